#include "easydel/train/freezing.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

std::string frozen_in(models::Model& model) {
  std::vector<std::string> out;
  for (const nn::Entry& entry : model.parameters().entries())
    if (!entry.trainable && entry.path.ends_with("up_proj.weight")) out.push_back(std::to_string(entry.unit));
  return join(out, " ");
}

TEST(Freezing, OfLayersByNumber) {
  const test::TemporaryFolder folder;
  const test::LogLines log;
  auto parts = test::small_run(folder.path(), "{max_training_steps: 2, do_last_save: false, frozen_layers: [0, 2]}");
  const auto model = parts.model;
  const auto value = [&](const char* path) { return model->parameters().find(path)->shard.detach().clone(); };
  const Tensor frozen = value("model.layers.2.mlp.up_proj.weight"), moving = value("model.layers.1.mlp.up_proj.weight");
  Trainer(std::move(parts)).run();
  EXPECT_EQ(frozen_in(*model), "0 2");
  EXPECT_TRUE(frozen.equal(value("model.layers.2.mlp.up_proj.weight")));
  EXPECT_FALSE(moving.equal(value("model.layers.1.mlp.up_proj.weight")));
  EXPECT_TRUE(log.has("trainer.frozen_layers: 18 parameters are frozen, 29 are trained")) << log.text;
}

TEST(Freezing, OfLayersInAdditionToAPattern) {
  const test::TemporaryFolder folder;
  const test::LogLines log;
  auto parts = test::small_run(folder.path(), "{frozen_layers: [4], frozen_parameters: \"layers.1.mlp\"}");
  freeze(*parts.model, parts.trainer.common);
  EXPECT_EQ(frozen_in(*parts.model), "1 4");
}

TEST(Freezing, LayersThatAreNotThere) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& trainer) {
    auto parts = test::small_run(folder.path(), trainer);
    return test::refusal([&] { freeze(*parts.model, parts.trainer.common); });
  };
  EXPECT_EQ(refused("{frozen_layers: [5]}"),
            "trainer.frozen_layers: the model has no layer 5\n    its layers are 0 to 4");
  EXPECT_EQ(refused("{frozen_layers: [0, 1, 2, 3, 4], frozen_parameters: \"embed|norm|lm_head\"}"),
            "trainer.frozen_parameters: nothing is left to train");
}

}  // namespace
}  // namespace easydel::train
