// Mixtures of experts: the router, and additions to the experts' results.
#include "easydel/nn/moe.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/sigmoid.h>
#include <gtest/gtest.h>

#include "nn/built.h"

namespace easydel::nn {
namespace {

constexpr int64_t tokens = 6, size = 16, inner = 8;

TEST(Router, IsAProductThatIsNoLinearLayerOfTheModel) {
  Built built(at::kBFloat16);
  ops::RouterSpec spec;
  spec.experts = 4, spec.top_k = 2;
  const Router router(built.scope() / "gate", size, spec, {.weight = "weight"}, /*exact=*/true, 0.1);
  const Entry& entry = built.entry("gate.weight");
  EXPECT_TRUE(entry.router);
  EXPECT_FALSE(is_linear(entry));
  EXPECT_EQ(entry.compute, at::kFloat);
  Pass pass = Pass::over({0, tokens});
  const Tensor x = random_values({tokens, size}, "x").to(at::kBFloat16);
  const auto [routing, logits] = router(x, pass);
  EXPECT_EQ(logits.scalar_type(), at::kFloat);  // an exact router computes in fp32
  EXPECT_TRUE(logits.allclose(at::linear(x.to(at::kFloat), entry.shard), 1e-4, 1e-4));
  EXPECT_TRUE(routing.indices.select(1, 0).equal(logits.argmax(1)));
}

MoeSpec small() {
  MoeSpec spec;
  spec.name = "mlp";
  spec.router.experts = 4, spec.router.top_k = 2;
  spec.experts.experts = 4, spec.experts.size = size, spec.experts.inner = inner;
  return spec;
}

TEST(Moe, AddsTheSharedExpertBehindItsGate) {
  MoeSpec spec = small();
  Built plain_built, shared_built;
  const Moe plain(plain_built.scope(), spec);
  spec.shared = "shared_expert", spec.shared_inner = inner, spec.shared_gate = "shared_expert_gate";
  const Moe shared(shared_built.scope(), spec);
  const Tensor x = random_values({tokens, size}, "x");
  Pass pass = Pass::over({0, tokens});
  const Tensor gate = at::sigmoid(at::linear(x, shared_built.entry("mlp.shared_expert_gate.weight").shard));
  Built own;
  const GatedMlp same(own.scope() / "mlp" / "shared_expert", size, inner, ops::Activation::silu, {});
  const Tensor expected = plain.forward(x, pass).x + gate * same(x, pass);
  EXPECT_TRUE(shared.forward(x, pass).x.allclose(expected, 1e-5, 1e-5));
}

TEST(Moe, GivesItsRoutersLogitsToTheLoss) {
  Built built;
  const Moe moe(built.scope(), small());
  Pass pass = Pass::over({0, tokens});
  const LayerOutput out = moe.forward(random_values({tokens, size}, "x"), pass);
  EXPECT_EQ(out.extras.at("router_logits").sizes(), (std::vector<int64_t>{tokens, 4}));
}

}  // namespace
}  // namespace easydel::nn
