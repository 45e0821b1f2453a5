#include <ATen/ops/norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "easydel/ops/attention_backends.h"

namespace easydel::ops {
namespace {

// q, k, v and dout, [tokens, heads, dim].
struct Case {
  Tensor q, k, v, dout;
  double scale;

  Case to(at::ScalarType type) const { return {q.to(type), k.to(type), v.to(type), dout.to(type), scale}; }

  // Gradients by the program.
  std::vector<Tensor> ours() const {
    const Tensor a = leaf(q), b = leaf(k), c = leaf(v);
    const std::array<AttentionRange, 1> ranges = {{{0, q.size(0), 0, q.size(0)}}};
    AttentionCall call;
    call.sequences = ranges;
    AttentionSpec spec;
    spec.scale = scale;
    attention(spec, call, a, b, c, AttentionMechanism::flash_attn2).backward(dout);
    return {a.grad(), b.grad(), c.grad()};
  }
  // By torch, whose heads come first.
  std::vector<Tensor> torchs() const {
    const Tensor a = leaf(q), b = leaf(k), c = leaf(v);
    const auto heads_first = [](const Tensor& t) { return t.transpose(0, 1).unsqueeze(0); };
    at::scaled_dot_product_attention(heads_first(a), heads_first(b), heads_first(c), {}, 0, true, scale)
        .backward(heads_first(dout));
    return {a.grad(), b.grad(), c.grad()};
  }

 private:
  static Tensor leaf(const Tensor& t) { return t.detach().clone().requires_grad_(true); }
};

// Random numbers of bf16, scores of deviation `sharp`; with `common` the values of all keys are nearly the same, and so
// the gradient of a score is a small difference of large numbers.
Case random_case(int64_t tokens, double sharp, double common) {
  constexpr int64_t heads = 6, dim = 64;
  const auto numbers = [&] { return at::randn({tokens, heads, dim}); };
  Case c{numbers(), numbers(), numbers(), numbers(), sharp / std::sqrt(double(dim))};
  c.v = c.v + common * at::randn({1, heads, dim});
  return c.to(at::kBFloat16);
}

// The squares of the relative distances of gradients from the exact ones.
std::array<double, 3> squares(const std::vector<Tensor>& gradients, const std::vector<Tensor>& exact) {
  std::array<double, 3> all{};
  for (size_t i = 0; i < 3; ++i) {
    const double off = at::norm(gradients[i].to(at::kDouble) - exact[i]).item<double>();
    all[i] = off * off / std::pow(at::norm(exact[i]).item<double>(), 2);
  }
  return all;
}

// On the average of some draws, because single ones are apart by a tenth either way.
TEST(FlashAttention, HasGradientsInBf16AsNearTheExactOnesAsTorchs) {
  at::manual_seed(3);
  for (const auto& [tokens, draws] : {std::pair(50, 8), {200, 3}})
    for (const double sharp : {0.1, 1.0, 6.0})
      for (const double common : {0.0, 30.0}) {
        std::array<double, 3> ours{}, torchs{};
        for (int draw = 0; draw < draws; ++draw) {
          const Case c = random_case(tokens, sharp, common);
          const auto exact = c.to(at::kDouble).torchs();
          const auto one = squares(c.ours(), exact), other = squares(c.torchs(), exact);
          for (size_t i = 0; i < 3; ++i) ours[i] += one[i], torchs[i] += other[i];
        }
        for (size_t i = 0; i < 3; ++i)
          EXPECT_LE(std::sqrt(ours[i]), 1.15 * std::sqrt(torchs[i]))
              << "gradient " << i << " of " << tokens << " tokens, " << sharp << ", " << common;
      }
}

}  // namespace
}  // namespace easydel::ops
