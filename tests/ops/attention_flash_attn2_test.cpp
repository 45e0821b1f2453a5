#include <ATen/ops/norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <gtest/gtest.h>

#include <array>

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
    attention(spec, call, a, b, c, "flash_attn2").backward(dout);
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

double distance(const Tensor& a, const Tensor& exact) {
  return at::norm(a.to(at::kDouble) - exact).item<double>() / at::norm(exact).item<double>();
}

// Random numbers of bf16; scores of deviation `sharp`; and where values nearly are the same for every key, dout v is
// near dout out, so that the gradient of a score is a small difference.
Case random_case(int64_t tokens, int64_t dim, double sharp, double common) {
  Case c{at::randn({tokens, 3, dim}), at::randn({tokens, 3, dim}), at::randn({tokens, 3, dim}),
         at::randn({tokens, 3, dim}), sharp / std::sqrt(double(dim))};
  c.v = c.v + common * at::randn({1, 3, dim});
  return c.to(at::kBFloat16);
}

TEST(FlashAttention, HasGradientsInBf16AsNearTheExactOnesAsTorchs) {
  at::manual_seed(3);
  for (const int64_t tokens : {1, 50, 333})
    for (const double sharp : {0.1, 1.0, 6.0})
      for (const double common : {0.0, 30.0}) {
        const Case c = random_case(tokens, 64, sharp, common);
        const auto exact = c.to(at::kDouble).torchs(), ours = c.ours(), torchs = c.torchs();
        for (size_t i = 0; i < 3; ++i) {
          if (tokens == 1 && i < 2) continue;  // zeros
          EXPECT_LE(distance(ours[i], exact[i]), 1.2 * distance(torchs[i], exact[i]))
              << "gradient " << i << " of " << tokens << " tokens, " << sharp << ", " << common;
        }
      }
}

}  // namespace
}  // namespace easydel::ops
