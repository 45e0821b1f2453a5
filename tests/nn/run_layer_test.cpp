// Blocks as the model runs them: placement, recomputation, captured tensors, release.
#include "easydel/nn/run_layer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "easydel/base/error.h"

namespace easydel::nn {
namespace {

// x * weight, and as an extra twice that.
class Scaled final : public Layer {
 public:
  Scaled(const Scope& scope, int* calls, std::vector<Parameter> shared = {})
      : weight_(scope.parameter("weight", {3}, Role::other, {})), calls_(calls), shared_(std::move(shared)) {}
  LayerOutput forward(const Tensor& x, Pass& pass) const override {
    ++*calls_;
    const Tensor y = pass.name("scaled", x * weight_.value());
    return {y, {{"twice", y * 2}}};
  }
  std::vector<Parameter> shared_parameters() const override { return shared_; }

 private:
  Parameter weight_;
  int* calls_;
  std::vector<Parameter> shared_;
};

// A model of such blocks, "blocks.0" and so on.
struct Blocks {
  ParameterTable table;
  Building building{table, at::kFloat, collective::Team::alone(), {}, {}, {}, {}, {}};
  std::vector<PlacedLayer> layers;
  int calls = 0;

  explicit Blocks(int64_t count, const char* stream = "text") {
    building.fill = [](Entry& entry, const Initial&, const std::vector<TensorSource>&) {
      entry.shard = at::arange(1, 4, at::TensorOptions().dtype(at::kFloat)).requires_grad_();
    };
    for (int64_t i = 0; i < count; ++i)
      layers.emplace_back(
          Scope(building).on_stream(stream) / "blocks" / i,
          [&](const Scope& block, int64_t index) {
            return std::make_unique<Scaled>(block / "scale", &calls,
                                            index > 0 ? layers[0].parameters : std::vector<Parameter>());
          },
          i);
  }
};

Tensor input() { return at::arange(12, at::TensorOptions().dtype(at::kFloat)).view({4, 3}); }

TEST(PlacedLayer, HasItsPathAndWhatItReads) {
  const Blocks blocks(2);
  EXPECT_EQ(blocks.layers[1].path, "blocks.1");
  ASSERT_EQ(blocks.layers[0].parameters.size(), 1u);
  EXPECT_EQ(blocks.layers[0].parameters[0].entry().path, "blocks.0.scale.weight");
  // Its own parameters first, then those of an earlier block.
  ASSERT_EQ(blocks.layers[1].parameters.size(), 2u);
  EXPECT_EQ(blocks.layers[1].parameters[0].entry().path, "blocks.1.scale.weight");
  EXPECT_EQ(blocks.layers[1].parameters[1].entry().path, "blocks.0.scale.weight");
}

TEST(RunLayer, ComputesAgainInTheBackwardAndGivesTheSameGradients) {
  const auto gradients = [](CheckpointPolicy policy, int calls) {
    Blocks blocks(2);
    Pass pass = Pass::over({0, 4});
    pass.activations().checkpointing = policy;
    const Tensor x = input().requires_grad_();
    const LayerOutput first = run_layer(pass, blocks.layers[0], x), second = run_layer(pass, blocks.layers[1], first.x);
    const Tensor loss = second.x.sum() + (first.extras.at("twice") * input()).sum();
    const auto found = torch::autograd::grad(
        {loss}, {x, blocks.table.entries()[0].shard, blocks.table.entries()[1].shard}, {at::ones({})});
    EXPECT_EQ(blocks.calls, calls);
    return found;
  };
  const auto plain = gradients(Checkpointing::none, 2), again = gradients(Checkpointing::nothing_saveable, 4);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(plain[i].equal(again[i])) << i;
}

TEST(RunLayer, ComputesNothingAgainWithoutGradients) {
  Blocks blocks(1);
  Pass pass = Pass::over({0, 4});
  pass.activations().checkpointing = Checkpointing::nothing_saveable;
  const at::NoGradGuard no_gradient;
  run_layer(pass, blocks.layers[0], input());
  EXPECT_EQ(blocks.calls, 1);
}

TEST(RunLayer, GivesTheRequestedRows) {
  const Blocks blocks(1);
  Pass pass = Pass::over({0, 3, 4});
  pass.stream().requested = {2, 0};
  const Tensor all = run_layer(pass, blocks.layers[0], input()).x;
  EXPECT_EQ(all.size(0), 4);
  EXPECT_TRUE(run_layer_requested(pass, blocks.layers[0], input()).x.equal(all.slice(0, 1, 3)));
}

// Says what the pass tells it.
class Asking final : public Layer {
 public:
  struct Seen {
    int64_t tokens = 0;
    bool has_backward = false, has_backward_without_gradients = false;
  };
  explicit Asking(std::vector<Seen>* seen) : seen_(seen) {}
  LayerOutput forward(const Tensor& x, Pass& pass) const override {
    Seen& now = seen_->emplace_back();
    now.tokens = pass.stream().tokens();
    now.has_backward = pass.activations().has_backward();
    const at::NoGradGuard no_gradient;
    now.has_backward_without_gradients = pass.activations().has_backward();
    return {x, {}};
  }

 private:
  std::vector<Seen>* seen_;
};

TEST(RunLayer, IsOnTheStreamOfItsPlace) {
  Blocks blocks(0);
  std::vector<Asking::Seen> seen;
  const auto build = [&](const Scope&, int64_t) { return std::make_unique<Asking>(&seen); };
  const Scope root(blocks.building);
  const PlacedLayer text(root.on_stream("text") / "text", build, 0),
      vision(root.on_stream("vision") / "vision", build, 1);
  Pass pass = Pass::over({0, 4});
  EXPECT_THROW(run_layer(pass, vision, input()), Bug);
  pass.stream("vision").cu_seqlens = {0, 2, 6};
  run_layer(pass, vision, input());
  run_layer(pass, text, input());
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].tokens, 6);
  EXPECT_EQ(seen[1].tokens, 4);
  EXPECT_EQ(pass.stream().tokens(), 4);
}

// What a layer computes without gradients, such as the choice of an indexer, is part of a forward all the same.
TEST(RunLayer, NotesWhetherABackwardFollowsWhenItEnters) {
  Blocks blocks(0);
  std::vector<Asking::Seen> seen;
  const PlacedLayer layer(
      Scope(blocks.building).on_stream("text") / "layer",
      [&](const Scope&, int64_t) { return std::make_unique<Asking>(&seen); }, 0);
  for (const auto checkpointing : {Checkpointing::none, Checkpointing::nothing_saveable}) {
    Pass pass = Pass::over({0, 4});
    pass.activations().checkpointing = checkpointing;
    run_layer(pass, layer, input().requires_grad_());
    EXPECT_TRUE(seen.back().has_backward && seen.back().has_backward_without_gradients);
    const at::NoGradGuard no_gradient;
    EXPECT_FALSE(pass.activations().has_backward());
    run_layer(pass, layer, input());
    EXPECT_FALSE(seen.back().has_backward || seen.back().has_backward_without_gradients);
  }
}

TEST(RunLayer, CapturesByPath) {
  const Blocks blocks(2);
  Pass pass = Pass::over({0, 4});
  std::vector<std::string> names;
  pass.activations().capture = [&](std::string_view name, const Tensor&) { names.emplace_back(name); };
  run_layer(pass, blocks.layers[1], input());
  EXPECT_EQ(names, (std::vector<std::string>{"blocks.1.scaled", "blocks.1"}));
}

}  // namespace
}  // namespace easydel::nn
