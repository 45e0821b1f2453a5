// The parts of decoders, compared with their formulas.
#include "easydel/nn/layers.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "nn/built.h"

namespace easydel::nn {
namespace {

constexpr int64_t tokens = 5, size = 24, inner = 40;

Tensor shard(Built& built, const char* path) { return built.entry(path).shard.detach(); }

TEST(Layers, LinearIsAProductAndABias) {
  Built built;
  const Linear linear(built.scope() / "q", size, inner, {.bias = true});
  built.entry("q.bias").shard.copy_(random_values({inner}, "b"));
  Pass pass = Pass::over({0, tokens});
  std::string named;
  pass.activations().capture = [&](std::string_view name, const Tensor&) { named = name; };
  const Tensor x = random_values({tokens, size}, "x"), y = linear(x, pass, "attn_query");
  EXPECT_TRUE(y.allclose(at::linear(x, shard(built, "q.weight"), shard(built, "q.bias")), 1e-5, 1e-5));
  EXPECT_EQ(named, "attn_query");
}

TEST(Layers, LinearsOfOneInputHaveTheBitsAndGradientsOfEach) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    Built built(type, /*learns=*/true);
    const Linear q(built.scope() / "q", size, inner, {.bias = true}), k(built.scope() / "k", size, 8, {}),
        v(built.scope() / "v", size, 8, {.bias = true});
    built.entry("q.bias").shard.detach().copy_(random_values({inner}, "b"));
    const Linear::Named layers[] = {{&q, "attn_query"}, {&k, "attn_key"}, {&v, "attn_value"}};
    const Tensor x = random_values({tokens, size}, "x").to(type);
    std::vector<std::string> named;
    const auto run = [&](bool together, std::vector<Tensor>& out) {
      Pass pass = Pass::over({0, tokens});
      pass.activations().capture = [&](std::string_view name, const Tensor&) { named.emplace_back(name); };
      if (together) return void(out = Linear::of_one_input(x, pass, layers));
      for (const Linear::Named& one : layers) out.push_back((*one.layer)(x, pass, one.name));
    };
    for (const bool learns : {false, true}) {
      const at::AutoGradMode mode(learns);
      std::vector<Tensor> joint, alone;
      named.clear();
      run(true, joint), run(false, alone);
      EXPECT_EQ(named, (std::vector<std::string>{"attn_query", "attn_key", "attn_value", "attn_query", "attn_key",
                                                 "attn_value"}));
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(joint[i].equal(alone[i])) << i;
        EXPECT_EQ(joint[i].requires_grad(), learns);
      }
    }
  }
}

TEST(Layers, EmbeddingGivesRowsInTheDtypeOfTheComputation) {
  Built built(at::kBFloat16);
  const Embedding embedding(built.scope() / "e", 9, size, 0.1);
  Pass pass = Pass::over({0, 3});
  const Tensor indices = at::tensor({4, 0, 4}, at::kLong);
  EXPECT_TRUE(embedding(indices, pass).equal(shard(built, "e.weight").index_select(0, indices).to(at::kBFloat16)));
}

TEST(Layers, EmbeddingTeachesItsPaddingRowNothing) {
  Built built(at::kFloat, /*learns=*/true);
  const Embedding embedding(built.scope() / "e", 9, size, 0.1, Split::vocabulary, /*padding=*/4);
  Pass pass = Pass::over({0, 3});
  embedding(at::tensor({4, 0, 4}, at::kLong), pass).sum().backward();
  const Tensor gradient = built.entry("e.weight").shard.grad();
  EXPECT_EQ(gradient[4].abs().max().item<float>(), 0.0f);
  EXPECT_EQ(gradient[0].min().item<float>(), 1.0f);
}

TEST(Layers, NormsAreTheirFormulas) {
  const Tensor x = random_values({tokens, size}, "x"), added = random_values({tokens, size}, "added");
  const auto rms = [](const Tensor& t) { return t * at::rsqrt(t.square().mean(-1, true) + 1e-6); };
  Built built;
  const Norm norm(built.scope() / "rms", size, {}), offset(built.scope() / "offset", size, {.offset = 1.0});
  const Norm layer(built.scope() / "layer", size, {.kind = NormKind::layer});
  for (const char* path : {"rms.weight", "offset.weight", "layer.weight", "layer.bias"})
    built.entry(path).shard.copy_(random_values({size}, path));
  EXPECT_TRUE(norm(x).allclose(rms(x) * shard(built, "rms.weight"), 1e-4, 1e-5));
  EXPECT_TRUE(offset(x).allclose(rms(x) * (1.0 + shard(built, "offset.weight")), 1e-4, 1e-5));
  EXPECT_TRUE(layer(x).allclose(
      at::layer_norm(x, {size}, shard(built, "layer.weight"), shard(built, "layer.bias"), 1e-6), 1e-4, 1e-5));
  const ops::NormOfSum of_sum = norm.after_sum(x, added);
  EXPECT_TRUE(of_sum.sum.equal(x + added));
  EXPECT_TRUE(of_sum.norm.allclose(norm(x + added), 1e-5, 1e-6));
}

TEST(Layers, MlpsAreTheirFormulas) {
  Built built;
  const GatedMlp gated(built.scope() / "g", size, inner, ops::Activation::silu, {});
  const Mlp mlp(built.scope() / "m", size, inner, ops::Activation::relu, {}, {}, {"fc1", "fc2"});
  Pass pass = Pass::over({0, tokens});
  const Tensor x = random_values({tokens, size}, "x");
  const auto by = [&](const Tensor& t, const char* path) { return at::linear(t, shard(built, path)); };
  const Tensor middle = at::silu(by(x, "g.gate_proj.weight")) * by(x, "g.up_proj.weight");
  EXPECT_TRUE(gated(x, pass).allclose(by(middle, "g.down_proj.weight"), 1e-4, 1e-4));
  EXPECT_TRUE(mlp(x, pass).allclose(by(at::relu(by(x, "m.fc1.weight")), "m.fc2.weight"), 1e-4, 1e-4));
}

}  // namespace
}  // namespace easydel::nn
