#include "easydel/ops/attention_backends.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <array>

#include "support/data.h"
#include "support/memory.h"

namespace easydel::ops {
namespace {

using enum AttentionMechanism;

struct Case {
  AttentionSpec spec;
  std::array<AttentionRange, 3> ranges = {{{0, 9, 0, 9}, {9, 10, 9, 10}, {10, 31, 10, 31}}};
  Tensor q = at::randn({31, 6, 8}), k = at::randn({31, 2, 8}), v = at::randn({31, 2, 8});
  Case() { spec.scale = 0.4; }

  // The result and the gradients of q, k, v and, where there are any, the sinks.
  std::vector<Tensor> with_gradients(AttentionMechanism mechanism) const {
    const auto leaf = [](const Tensor& t) { return t.detach().clone().requires_grad_(true); };
    const Tensor a = leaf(q), b = leaf(k), c = leaf(v);
    AttentionCall call;
    call.sequences = ranges;
    AttentionSpec own = spec;
    if (spec.sinks.defined()) own.sinks = leaf(spec.sinks);
    const Tensor out = attention(own, call, a, b, c, mechanism);
    (out * at::arange(out.size(2), out.options())).sum().backward();
    std::vector<Tensor> all = {out.detach(), a.grad(), b.grad(), c.grad()};
    if (own.sinks.defined()) all.push_back(own.sinks.grad());
    return all;
  }
  void expect_blockwise_is_vanilla() const { expect_equal_backends(blockwise, vanilla); }
  void expect_equal_backends(AttentionMechanism one, AttentionMechanism other) const {
    const auto a = with_gradients(one), b = with_gradients(other);
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_TRUE(a[i].allclose(b[i], 1e-4, 1e-5)) << config::word_of(one) << " " << config::word_of(other) << " " << i;
  }
};

TEST(Attention, IsTheSameByEveryBackend) {
  const Case c;
  c.expect_equal_backends(flash_attn2, vanilla);
  c.expect_equal_backends(sdpa, vanilla);
  c.expect_blockwise_is_vanilla();
}

TEST(Attention, ServesUpstreamsMechanismsByTheBackendsThatItHas) {
  const Case c;
  for (const AttentionMechanism mechanism :
       {autoregressive_decodeattn, blocksparse, blockwise, cudnn, flash_attn2, sdpa}) {
    check_attention(mechanism);
    c.expect_equal_backends(mechanism, vanilla);
  }
  EXPECT_EQ(backend_of(blocksparse), backend_of(flash_attn2));
  EXPECT_EQ(backend_of(autoregressive_decodeattn), backend_of(flash_attn2));
  EXPECT_EQ(backend_of(cudnn), backend_of(sdpa));
  EXPECT_EQ(backend_of(automatic), nullptr);
}

TEST(Attention, IsBuiltForThoseMechanismsThatTheConfigurationTakes) {
  for (const auto& choice : choices(AttentionMechanism{}))
    EXPECT_EQ(choice.built, choice.value == automatic || backend_of(choice.value) != nullptr) << choice.name;
}

TEST(Attention, SeesNoFurtherThanItsWindow) {
  for (const int64_t window : {1, 3, 5, 30}) {
    Case c;
    c.spec.window = window;
    c.expect_equal_backends(flash_attn2, vanilla);
    c.expect_equal_backends(sdpa, vanilla);
    c.expect_blockwise_is_vanilla();
  }
}

TEST(Attention, OfEveryKeyIsTheSameByEveryBackendWithAWindowToo) {
  for (const int64_t window : {0, 3}) {
    Case c;
    c.spec.kind = AttentionKind::full, c.spec.window = window;
    c.expect_equal_backends(flash_attn2, vanilla);
    c.expect_equal_backends(sdpa, vanilla);
    c.expect_blockwise_is_vanilla();
  }
}

TEST(Attention, CapsItsScores) {
  Case c;
  c.spec.softcap = 1.5;
  c.expect_equal_backends(flash_attn2, vanilla);
  c.expect_blockwise_is_vanilla();
}

TEST(Attention, HasSinksThatLearn) {
  Case c;
  c.spec.sinks = at::randn({6});
  c.expect_equal_backends(flash_attn2, vanilla);
  c.expect_blockwise_is_vanilla();
  c.spec.sinks = c.spec.sinks.to(at::kBFloat16), c.spec.window = 4;
  EXPECT_EQ(c.with_gradients(flash_attn2)[4].scalar_type(), at::kBFloat16);
}

TEST(Attention, LeansByDistanceWithSlopes) {
  for (const AttentionKind kind : {AttentionKind::causal, AttentionKind::full}) {
    Case c;
    c.spec.kind = kind, c.spec.slopes = at::arange(1, 7, at::kFloat) * 0.1;
    c.expect_equal_backends(flash_attn2, vanilla);
    c.spec.sinks = at::randn({6}), c.spec.softcap = 2;
    c.expect_equal_backends(flash_attn2, vanilla);
    c.expect_blockwise_is_vanilla();
  }
}

TEST(Attention, StaysInItsChunk) {
  for (const AttentionKind kind : {AttentionKind::causal, AttentionKind::full})
    for (const int64_t chunk : {1, 4, 50}) {
      Case c;
      c.spec.kind = kind, c.spec.chunk = chunk;
      c.expect_equal_backends(flash_attn2, vanilla);
      c.expect_blockwise_is_vanilla();
    }
}

TEST(Attention, TakesValuesOfAnotherSize) {
  Case c;
  c.v = at::randn({31, 2, 5});
  c.expect_equal_backends(flash_attn2, vanilla);
  c.expect_equal_backends(sdpa, vanilla);
  c.expect_blockwise_is_vanilla();
}

// A sequence of several blocks of queries and of keys, the last of each incomplete, after a short sequence.
struct LongCase : Case {
  LongCase() {
    ranges = {{{0, 7, 0, 7}, {7, 1207, 7, 1207}, {1207, 1207, 1207, 1207}}};
    q = at::randn({1207, 2, 4}), k = at::randn({1207, 1, 4}), v = at::randn({1207, 1, 4});
  }
};

TEST(BlockwiseAttention, IsTheReferenceOverManyBlocks) {
  const LongCase plain;
  plain.expect_blockwise_is_vanilla();
  for (const AttentionKind kind : {AttentionKind::causal, AttentionKind::full}) {
    LongCase c;
    c.spec.kind = kind, c.spec.window = 600, c.spec.softcap = 3, c.spec.sinks = at::randn({2});
    c.expect_blockwise_is_vanilla();
    c.spec.window = 0, c.spec.chunk = 700, c.spec.slopes = at::arange(1, 3, at::kFloat) * 0.01;
    c.expect_blockwise_is_vanilla();
  }
}

TEST(BlockwiseAttention, DropsWhatTheReferenceDrops) {
  LongCase c;
  c.spec.dropout = 0.3;
  c.expect_blockwise_is_vanilla();
}

TEST(Attention, RoundsSlopesAsTheReferenceDoes) {
  LongCase c;
  c.spec.slopes = at::arange(1, 3, at::kFloat) * 0.013, c.spec.slopes_in_bf16 = true;
  c.expect_blockwise_is_vanilla();
  c.expect_equal_backends(flash_attn2, vanilla);
  c.spec.window = 700, c.spec.sinks = at::randn({2});
  c.expect_equal_backends(flash_attn2, vanilla);
  c.spec.softcap = 2;
  EXPECT_EQ(test::refusal([&] { c.with_gradients(flash_attn2); }),
            "attention: 'flash_attn2' cannot serve this model here\n    flash_attn2: rounds no slopes below a softcap");
}

TEST(BlockwiseAttention, SeesKeysOfACacheBeforeItsQueries) {
  const LongCase c;
  const std::array<AttentionRange, 1> range = {{{0, 3, 100, 900, {}}}};
  AttentionCall call;
  call.sequences = range;
  const Tensor q = c.q.narrow(0, 0, 3);
  EXPECT_TRUE(attention(c.spec, call, q, c.k, c.v, blockwise)
                  .allclose(attention(c.spec, call, q, c.k, c.v, vanilla), 1e-4, 1e-5));
}

TEST(BlockwiseAttention, HoldsMemoryThatGrowsWithTheLengthAndNotWithItsSquare) {
  const auto most = [](AttentionMechanism mechanism, int64_t length) {
    Case c;
    c.ranges = {{{0, length, 0, length}, {length, length, length, length}, {length, length, length, length}}};
    c.q = at::randn({length, 1, 4}), c.k = at::randn({length, 1, 4}), c.v = at::randn({length, 1, 4});
    const test::PeakMemory memory;
    c.with_gradients(mechanism);
    return memory.bytes();
  };
  EXPECT_LT(most(blockwise, 4096), 2.5 * most(blockwise, 2048));
  EXPECT_GT(most(vanilla, 4096), 3.5 * most(vanilla, 2048));
}

TEST(Attention, TakesTheBestBackendThatServes) {
  Case c;
  AttentionCall call;
  call.sequences = c.ranges;
  EXPECT_EQ(pick_attention(automatic, {c.spec, call, c.q, c.k, c.v}).mechanism, flash_attn2);
  c.spec.dropout = 0.1;
  EXPECT_EQ(pick_attention(automatic, {c.spec, call, c.q, c.k, c.v}).mechanism, blockwise);
  call.masked = c.q.sum({1, 2}) > 0;
  EXPECT_EQ(pick_attention(automatic, {c.spec, call, c.q, c.k, c.v}).mechanism, vanilla);
}

TEST(Attention, SaysWhyABackendCannotServe) {
  Case c;
  c.spec.dropout = 0.1;
  AttentionCall call;
  EXPECT_EQ(test::refusal([&] {
              pick_attention(blocksparse, {c.spec, call, c.q, c.k, c.v});
            }),
            "attention: 'blocksparse' cannot serve this model here\n    flash_attn2: has no dropout");
  EXPECT_EQ(test::refusal([&] { check_attention(ring); }),
            "attention: 'ring' is not built yet\n"
            "    built: auto, blockwise, flash_attn2, sdpa, vanilla");
}

}  // namespace
}  // namespace easydel::ops
