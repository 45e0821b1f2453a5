#include "easydel/kernels/grouped.h"

#include <memory>

#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

// Groups of no rows, of one, of a block and its neighbors, of two to five vectors, and one with most of them.
const std::vector<int64_t> uneven = {0, 0, 1, 13, 13, 24, 61, 93, 163, 502, 502};
const int64_t groups = int64_t(uneven.size()) - 1, rows = uneven.back();

struct Case {
  DType weight, activation;
  AccumulationOrder order;
};
const Case cases[] = {{DType::f32, DType::f32, AccumulationOrder::fp32_chain},
                      {DType::bf16, DType::bf16, AccumulationOrder::fp32_chain},
                      {DType::bf16, DType::f32, AccumulationOrder::bf16_tile},
                      {DType::bf16, DType::bf16, AccumulationOrder::bf16_tile},
                      {DType::bf16, DType::bf16, AccumulationOrder::bf16_pairs}};

// Numbers in either type.
struct Values {
  Values(int64_t count, unsigned seed) : wide(normal(count, seed)), narrow(narrowed(wide)) {}
  Input in(DType dtype, int64_t stride, int64_t row = 0) const {
    return dtype == DType::f32 ? Input(wide.data() + row * stride, stride)
                               : Input(narrow.data() + row * stride, stride);
  }
  std::vector<float> wide;
  std::vector<bf16> narrow;
};

struct Result {
  explicit Result(int64_t count) : wide(size_t(count), 7.0f), narrow(size_t(count), kernels::narrow(7.0f)) {}
  Output out(DType dtype, int64_t stride, int64_t row = 0) {
    return dtype == DType::f32 ? Output(wide.data() + row * stride, stride)
                               : Output(narrow.data() + row * stride, stride);
  }
  void expect(const Result& other) const {
    EXPECT_TRUE(same_bits(wide, other.wide));
    EXPECT_TRUE(same_bits(narrow, other.narrow));
  }
  std::vector<float> wide;
  std::vector<bf16> narrow;
};

TEST(GroupedProduct, GivesARowTheBitsOfItsGroupAlone) {
  constexpr int64_t n = 70;
  for (const int64_t k : {75, 96}) {  // whole blocks or not
    const Values x(rows * k, 1), w(groups * n * k, 2);
    const auto bias = normal(groups * n, 3);
    on_every_isa([&] {
      for (const Case& c : cases) {
        std::vector<PackedWeight> packed;
        for (int64_t g = 0; g < groups; ++g)
          packed.push_back(pack(serial_executor(), w.in(c.weight, k, g * n), n, k, c.weight));
        std::vector<const PackedWeight*> some;
        for (int64_t g = 0; g < groups; ++g) some.push_back(g % 2 ? &packed[size_t(g)] : nullptr);
        Result expected(rows * n);
        for (int64_t g = 0; g < groups; ++g) {
          const int64_t first = uneven[size_t(g)];
          product(serial_executor(), packed[size_t(g)], x.in(c.activation, k, first), uneven[size_t(g) + 1] - first,
                  expected.out(c.activation, n, first), bias.data() + g * n, c.order);
        }
        for (Executor* const executor : {&serial_executor(), &pool_of_five()})
          for (const bool kept : {false, true}) {
            GroupWeights weights{.n = n, .k = k, .rows = w.in(c.weight, k), .dtype = c.weight};
            if (kept) weights.packed = some;
            Result y(rows * n);
            grouped_product(*executor, uneven, weights, x.in(c.activation, k), y.out(c.activation, n), bias.data(),
                            c.order);
            y.expect(expected);
          }
      }
    });
  }
}

TEST(GroupedProduct, CutsAGroupThatIsTooLargeForOnePiece) {
  constexpr int64_t n = 33, k = 4000;
  const std::vector<int64_t> begin = {0, 5, 700};
  const auto x = normal(700 * k, 4), w = normal(2 * n * k, 5);
  std::vector<float> y(700 * n), expected(700 * n);
  for (size_t g = 0; g < 2; ++g)
    product(serial_executor(), pack(serial_executor(), {w.data() + int64_t(g) * n * k, k}, n, k, DType::f32),
            {x.data() + begin[g] * k, k}, begin[g + 1] - begin[g], {expected.data() + begin[g] * n, n}, nullptr,
            AccumulationOrder::fp32_chain);
  grouped_product(pool_of_two(), begin, {.n = n, .k = k, .rows = {w.data(), k}}, {x.data(), k}, {y.data(), n}, nullptr,
                  AccumulationOrder::fp32_chain);
  EXPECT_TRUE(same_bits(y, expected));
}

TEST(GroupedProduct, HasTheGradientsOfEachGroupAlone) {
  for (const int64_t n : {70, 2100})  // the second is summed in stretches
    for (const DType dtype : {DType::f32, DType::bf16}) {
      constexpr int64_t k = 45;
      const Values x(rows * k, 6), dy(rows * n, 7), w(groups * n * k, 8);
      on_every_isa([&] {
        Result expected_dx(rows * k), expected_dw(groups * n * k);
        for (int64_t g = 0; g < groups; ++g) {
          const int64_t first = uneven[size_t(g)], count = uneven[size_t(g) + 1] - first;
          product_dx(serial_executor(), dy.in(dtype, n, first), w.in(dtype, k, g * n), count, n, k,
                     expected_dx.out(dtype, k, first), false);
          product_dw(serial_executor(), dy.in(dtype, n, first), x.in(dtype, k, first), count, n, k,
                     expected_dw.out(DType::f32, k, g * n), false);
        }
        for (Executor* const executor : {&serial_executor(), &pool_of_five()}) {
          Result dx(rows * k), dw(groups * n * k);
          grouped_product_dx(*executor, uneven, dy.in(dtype, n), w.in(dtype, k), n, k, dx.out(dtype, k));
          grouped_product_dw(*executor, uneven, dy.in(dtype, n), x.in(dtype, k), n, k, dw.out(DType::f32, k));
          dx.expect(expected_dx);
          dw.expect(expected_dw);
        }
      });
    }
}

// Rows that begin on a line are written past the caches, others are not.
TEST(GroupedProduct, GivesALargeGradientTheSameBitsAtAnyAddress) {
  constexpr int64_t n = 66, k = 1040;
  const std::vector<int64_t> begin = {0, 3, 3, 80, 400};
  const int64_t of_groups = int64_t(begin.size() - 1) * n * k;
  const Values x(400 * k, 10), dy(400 * n, 11);
  const Buffer<float> on_a_line = allocate<float>(of_groups + 1);
  on_every_isa([&] {
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const bool grouped : {true, false}) {
        std::vector<float> all[2];
        for (const int64_t off : {0, 1}) {
          float* const dw = on_a_line.get() + off;
          const Input from_y = dy.in(dtype, n), from_x = x.in(dtype, k);
          if (grouped)
            grouped_product_dw(pool_of_five(), begin, from_y, from_x, n, k, {dw, k});
          else
            product_dw(pool_of_five(), from_y, from_x, 400, n, k, {dw, k}, false);
          all[off].assign(dw, dw + (grouped ? of_groups : n * k));
        }
        EXPECT_TRUE(same_bits(all[0], all[1]));
      }
  });
}

TEST(GroupedProduct, TakesNoRowsAtAll) {
  const std::vector<int64_t> begin = {0, 0, 0};
  const auto w = normal(2 * 3 * 4, 9);
  std::vector<float> dw(24, 5.0f);
  grouped_product(pool_of_two(), begin, {.n = 3, .k = 4, .rows = {w.data(), 4}}, {w.data(), 4}, {dw.data(), 3}, nullptr,
                  AccumulationOrder::fp32_chain);
  grouped_product_dw(pool_of_two(), begin, {w.data(), 3}, {w.data(), 4}, 3, 4, {dw.data(), 4});
  EXPECT_EQ(dw, std::vector<float>(24, 0.0f));
}

}  // namespace
}  // namespace easydel::kernels
