#include "easydel/ops/attention_backends.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <array>

#include "support/data.h"

namespace easydel::ops {
namespace {

struct Case {
  AttentionSpec spec;
  std::array<AttentionRange, 3> ranges = {{{0, 9, 0, 9}, {9, 10, 9, 10}, {10, 31, 10, 31}}};
  Tensor q = at::randn({31, 6, 8}), k = at::randn({31, 2, 8}), v = at::randn({31, 2, 8});
  Case() { spec.scale = 0.4; }

  // The result and the gradients of q, k, v and, where there are any, the sinks.
  std::vector<Tensor> with_gradients(const std::string& backend) const {
    const auto leaf = [](const Tensor& t) { return t.detach().clone().requires_grad_(true); };
    const Tensor a = leaf(q), b = leaf(k), c = leaf(v);
    AttentionCall call;
    call.sequences = ranges;
    AttentionSpec own = spec;
    if (spec.sinks.defined()) own.sinks = leaf(spec.sinks);
    const Tensor out = attention(own, call, a, b, c, backend);
    (out * at::arange(out.size(2), out.options())).sum().backward();
    std::vector<Tensor> all = {out.detach(), a.grad(), b.grad(), c.grad()};
    if (own.sinks.defined()) all.push_back(own.sinks.grad());
    return all;
  }
  void expect_equal_backends(const char* one, const char* other) const {
    const auto a = with_gradients(one), b = with_gradients(other);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].allclose(b[i], 1e-4, 1e-5)) << one << " " << other << " " << i;
  }
};

TEST(Attention, IsTheSameByEveryBackend) {
  const Case c;
  c.expect_equal_backends("flash", "vanilla");
  c.expect_equal_backends("sdpa", "vanilla");
}

TEST(Attention, SeesNoFurtherThanItsWindow) {
  for (const int64_t window : {1, 3, 5, 30}) {
    Case c;
    c.spec.window = window;
    c.expect_equal_backends("flash_attn2", "vanilla");
    c.expect_equal_backends("sdpa", "vanilla");
  }
}

TEST(Attention, OfEveryKeyIsTheSameByEveryBackendWithAWindowToo) {
  for (const int64_t window : {0, 3}) {
    Case c;
    c.spec.kind = AttentionKind::full, c.spec.window = window;
    c.expect_equal_backends("flash_attn2", "vanilla");
    c.expect_equal_backends("sdpa", "vanilla");
  }
}

TEST(Attention, CapsItsScores) {
  Case c;
  c.spec.softcap = 1.5;
  c.expect_equal_backends("flash_attn2", "vanilla");
}

TEST(Attention, HasSinksThatLearn) {
  Case c;
  c.spec.sinks = at::randn({6});
  c.expect_equal_backends("flash_attn2", "vanilla");
  c.spec.sinks = c.spec.sinks.to(at::kBFloat16), c.spec.window = 4;
  EXPECT_EQ(c.with_gradients("flash_attn2")[4].scalar_type(), at::kBFloat16);
}

TEST(Attention, LeansByDistanceWithSlopes) {
  for (const AttentionKind kind : {AttentionKind::causal, AttentionKind::full}) {
    Case c;
    c.spec.kind = kind, c.spec.slopes = at::arange(1, 7, at::kFloat) * 0.1;
    c.expect_equal_backends("flash_attn2", "vanilla");
    c.spec.sinks = at::randn({6}), c.spec.softcap = 2;
    c.expect_equal_backends("flash_attn2", "vanilla");
  }
}

TEST(Attention, StaysInItsChunk) {
  for (const AttentionKind kind : {AttentionKind::causal, AttentionKind::full})
    for (const int64_t chunk : {1, 4, 50}) {
      Case c;
      c.spec.kind = kind, c.spec.chunk = chunk;
      c.expect_equal_backends("flash_attn2", "vanilla");
    }
}

TEST(Attention, TakesValuesOfAnotherSize) {
  Case c;
  c.v = at::randn({31, 2, 5});
  c.expect_equal_backends("flash_attn2", "vanilla");
  c.expect_equal_backends("sdpa", "vanilla");
}

TEST(Attention, TakesTheBestBackendThatServes) {
  Case c;
  AttentionCall call;
  call.sequences = c.ranges;
  EXPECT_EQ(pick_attention("auto", {c.spec, call, c.q, c.k, c.v}).name, "flash_attn2");
  c.spec.dropout = 0.1;
  EXPECT_EQ(pick_attention("auto", {c.spec, call, c.q, c.k, c.v}).name, "vanilla");
}

TEST(Attention, SaysWhyABackendCannotServe) {
  Case c;
  c.spec.dropout = 0.1;
  AttentionCall call;
  EXPECT_EQ(test::refusal([&] { pick_attention("flash", {c.spec, call, c.q, c.k, c.v}); }),
            "attention: 'flash' cannot serve this model here\n    flash_attn2: has no dropout");
  EXPECT_EQ(test::refusal([&] { check_attention_name("vanila"); }),
            "attention: 'vanila' is no attention built here\n    did you mean 'vanilla'?");
}

}  // namespace
}  // namespace easydel::ops
