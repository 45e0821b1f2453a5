// Named tensors of a layer: what is kept for its recomputation and given back there, and what is captured.
#include "easydel/nn/activations.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "easydel/nn/run_layer.h"
#include "nn/built.h"

namespace easydel::nn {
namespace {

// Two products of one name and a third one of another, which say whether they were given their result.
class Products final : public Layer {
 public:
  Products(const Scope& scope, std::vector<std::string>* computed)
      : weight_(scope.parameter("weight", {3}, Role::other, {})), computed_(computed) {}
  LayerOutput forward(const Tensor& x, Pass& pass) const override {
    const auto product = [&](const char* name, const Tensor& a, double factor) {
      return pass.make(name, [&](const Tensor& given) {
        if (!given.defined()) computed_->emplace_back(name);
        const Tensor out = a * weight_.value() * factor;
        // An op takes its given result and builds its backward; here the backward does not need the result.
        if (given.defined()) {
          EXPECT_TRUE(given.equal(out)) << name;
        }
        return out;
      });
    };
    const Tensor first = product("mlp_up", x, 2.0), second = product("mlp_up", first, 3.0);
    const Tensor third = product("mlp_down", second, 5.0);
    return {third + product("", second, 7.0), {}};
  }

 private:
  Parameter weight_;
  std::vector<std::string>* computed_;
};

struct OneLayer {
  Built built{at::kFloat, /*learns=*/true};
  std::vector<std::string> computed;
  PlacedLayer layer{built.scope().on_stream(text_stream) / "blocks",
                    [this](const Scope& block, int64_t) { return std::make_unique<Products>(block, &computed); }, 0};
  OneLayer() { built.entry("blocks.weight").shard.detach().copy_(at::arange(1, 4)); }
};

Tensor gradient(OneLayer& one, const CheckpointPolicy& policy) {
  Pass pass = Pass::over({0, 2});
  pass.activations().checkpointing = policy;
  const Tensor x = at::arange(6, at::kFloat).view({2, 3}).requires_grad_();
  const LayerOutput out = run_layer(pass, one.layer, x);
  one.computed.clear();  // from here on: what the backward computes again
  return torch::autograd::grad({out.x.sum()}, {x})[0];
}

CheckpointPolicy all_but(std::set<std::string, std::less<>> names) {
  CheckpointPolicy policy(Checkpointing::save_names);
  policy.names = std::move(names);
  policy.all_but_names = true;
  return policy;
}

TEST(Activations, GivesARecomputationWhatThePolicyKeeps) {
  using Names = std::vector<std::string>;
  OneLayer one;
  const Tensor plain = gradient(one, Checkpointing::none);
  EXPECT_EQ(one.computed, Names());
  const auto expect_again = [&](const CheckpointPolicy& policy, const Names& names) {
    EXPECT_TRUE(gradient(one, policy).equal(plain));
    EXPECT_EQ(one.computed, names);
  };
  expect_again(Checkpointing::nothing_saveable, {"mlp_up", "mlp_up", "mlp_down", ""});
  expect_again(all_but({"mlp_down"}), {"mlp_down", ""});
  expect_again(all_but({"mlp_up"}), {"mlp_up", "mlp_up", ""});
  expect_again(all_but({}), {""});  // without a name nothing is kept
}

TEST(Activations, CapturesNamedTensorsUnderThePathOfTheirLayer) {
  Pass pass = Pass::over({0, 1});
  const Tensor x = at::ones({1});
  EXPECT_TRUE(pass.name("alone", x).is_same(x));
  std::vector<std::string> names;
  pass.activations().capture = [&](std::string_view name, const Tensor& seen) {
    names.emplace_back(name);
    EXPECT_TRUE(seen.is_same(x));
  };
  EXPECT_TRUE(pass.name("alone", x).is_same(x));
  pass.make("made", [&](const Tensor&) { return x; });  // to be kept, not to be captured
  EXPECT_EQ(names, (std::vector<std::string>{"alone"}));
}

TEST(Activations, KnowWhetherABackwardFollows) {
  Pass pass = Pass::over({0, 1});
  EXPECT_TRUE(pass.activations().has_backward());
  const at::NoGradGuard no_gradient;
  EXPECT_FALSE(pass.activations().has_backward());
}

}  // namespace
}  // namespace easydel::nn
