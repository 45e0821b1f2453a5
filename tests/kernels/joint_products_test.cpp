// Products of one left side with several weights: each has the bits that it has alone.
#include "easydel/kernels/joint_products.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;
using enum AccumulationOrder;

constexpr int64_t columns[] = {33, 1, 200, 32};

// y of each weight, with a bias for every second one, in rows that lie apart.
template <class W>
std::vector<std::vector<float>> results(Executor& executor, const std::vector<W>& weights, const std::vector<float>& x,
                                        const std::vector<float>& bias, AccumulationOrder order, bool jointly) {
  const int64_t k = weights.front().k(), m = int64_t(x.size()) / k;
  std::vector<std::vector<float>> out;
  std::vector<JointPart<W>> parts;
  for (const W& w : weights) out.emplace_back(size_t(m * (w.n() + 3)), 77.0f);
  for (size_t i = 0; i < weights.size(); ++i)
    parts.push_back({&weights[i], {out[i].data(), weights[i].n() + 3}, i % 2 ? bias.data() : nullptr});
  if (jointly)
    products(executor, parts, {x.data(), k}, m, order);
  else
    for (const auto& part : parts) product(executor, *part.weight, {x.data(), k}, m, part.y, part.bias, order);
  return out;
}

template <class W, class Make>
void expect_same(AccumulationOrder order, const Make& make) {
  const auto bias = normal(200, 9);
  for (const int64_t k : {64, 190, 700}) {
    std::vector<W> weights;
    for (const int64_t n : columns) weights.push_back(make(n, k, normal(n * k, unsigned(n))));
    for (const int64_t m : {1, 3, 13, 40, 200}) {
      SCOPED_TRACE(str(m, " rows of ", k, " in ", name(order)));
      const auto x = hostile(m * k, 5);
      const auto alone = results(serial_executor(), weights, x, bias, order, false);
      for (Executor* const executor : {&serial_executor(), &pool_of_two(), &pool_of_five()}) {
        const auto joint = results(*executor, weights, x, bias, order, true);
        for (size_t i = 0; i < joint.size(); ++i) EXPECT_TRUE(same_bits(joint[i], alone[i])) << "weight " << i;
      }
    }
  }
}

TEST(JointProducts, OfDenseWeightsHaveTheBitsOfEach) {
  on_every_isa([] {
    for (const AccumulationOrder order : {bf16_tile, bf16_pairs, fp32_chain})
      expect_same<PackedWeight>(order, [](int64_t n, int64_t k, const std::vector<float>& w) {
        return pack(serial_executor(), {w.data(), k}, n, k, DType::bf16);
      });
    expect_same<PackedWeight>(fp32_chain, [](int64_t n, int64_t k, const std::vector<float>& w) {
      return pack(serial_executor(), {w.data(), k}, n, k, DType::f32);
    });
  });
}

TEST(JointProducts, OfCodesHaveTheBitsOfEach) {
  on_every_isa([] {
    for (const int64_t group : {0, 64})
      for (const Codes codes : {Codes::bytes, Codes::table4, Codes::nibbles})
        for (const AccumulationOrder order : {bf16_tile, bf16_pairs, fp32_chain})
          expect_same<QuantizedWeight>(order, [&](int64_t n, int64_t k, const std::vector<float>& w) {
            return quantize(serial_executor(), {w.data(), k}, n, k, {codes, group, nf4_table()});
          });
  });
}

TEST(JointProducts, RefuseWeightsOfOtherKinds) {
  const auto w = normal(64 * 64, 1);
  std::vector<float> y(64 * 2);
  std::vector<QuantizedWeight> weights;
  for (const int64_t group : {0, 32})
    weights.push_back(quantize(serial_executor(), {w.data(), 64}, 64, 64, {.group = group}));
  const JointPart<QuantizedWeight> parts[] = {{&weights[0], {y.data(), 64}}, {&weights[1], {y.data() + 64, 64}}};
  EXPECT_FALSE(is_joint(weights[0], weights[1]));
  EXPECT_THROW(products(serial_executor(), parts, {w.data(), 64}, 1, fp32_chain), Bug);
}

}  // namespace
}  // namespace easydel::kernels
