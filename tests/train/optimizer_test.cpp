// Optimizers over a model: saving, resuming, and the parameters that a rule applies to. Their numbers are tested by
// recorded cases (tests/probe/recorded_vectors_test.cpp) and runs (replay_test.cpp).
#include "easydel/train/optimizer.h"

#include <gtest/gtest.h>

#include <map>

#include "easydel/nn/weight_forms.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

using test::small_run;

std::string trained(const std::filesystem::path& folder, const std::string& keys) {
  Trainer trainer(small_run(folder, keys));
  trainer.run();
  return test::weights_of(trainer.model());
}

TEST(Optimizers, GoOnFromACheckpointToTheBit) {
  test::LogLines log;
  for (const std::string name : {"adamw", "adafactor", "lion", "mars", "muon", "quad", "rmsprop", "skew", "soap",
                                 "adamw_8bit", "lion_8bit", "ademamix_8bit"}) {
    const test::TemporaryFolder whole, parts;
    const std::string keys =
        "{optimizer: " + name +
        ", weight_decay: 0.1, extra_optimizer_kwargs: {momentum: 0.9, centered: true, precondition_frequency: 2}, ";
    const std::string expected = trained(whole.path(), keys + "num_train_epochs: 1}");
    trained(parts.path(), keys + "num_train_epochs: 1, max_training_steps: 2}");
    EXPECT_TRUE(trained(parts.path(), keys + "num_train_epochs: 1}") == expected) << name;
  }
}

TEST(Optimizers, MuonIsForMatricesAndTheOthersHaveAdamW) {
  models::LoadOptions options;
  options.dtype = options.param_dtype = models::DTypeSetting::fp32;
  options.training = true;
  const auto model = models::load_model(test::test_data("models/stories260K-hf"), options);
  const Optimizer optimizer(model->parameters(), {.rules = {muon({}), adamw({})}});
  for (const Optimizer::Slot& slot : optimizer.slots())
    EXPECT_EQ(slot.states.contains("momentum"), slot.entry->path.ends_with("_proj.weight")) << slot.entry->path;
}

TEST(Optimizers, AdamWWritesTheCopyThatProductsRead) {
  models::LoadOptions options;
  options.dtype = models::DTypeSetting::bf16, options.param_dtype = models::DTypeSetting::fp32;
  options.training = true;
  const auto model = models::load_model(test::test_data("models/stories260K-hf"), options);
  Optimizer optimizer(model->parameters(), {.rules = {adamw({}), adamw({})}});
  const nn::Pass pass;
  for (int step = 0; step < 2; ++step) {
    std::map<std::string, Tensor> copies;
    for (nn::Entry& entry : model->parameters().entries()) {
      entry.shard.mutable_grad() = entry.shard.detach().sign();
      if (entry.forms) copies[entry.path] = entry.forms->matrix(pass).compute;
    }
    optimizer.step(0.01);
    for (const nn::Entry& entry : model->parameters().entries()) {
      if (!entry.forms) continue;
      const Tensor now = entry.forms->matrix(pass).compute;
      EXPECT_TRUE(now.equal(entry.shard.detach().to(at::kBFloat16))) << entry.path;
      EXPECT_EQ(now.const_data_ptr(), copies.at(entry.path).const_data_ptr()) << entry.path;
    }
    EXPECT_GT(copies.size(), 10u);
  }
}

TEST(Optimizers, AFactorOnGradientsIsThatOfScaledGradientsToTheBit) {
  models::LoadOptions options;
  options.dtype = options.param_dtype = models::DTypeSetting::fp32;
  options.training = true;
  const auto stepped = [&](const OptimizerRules& rules, bool beforehand) {
    const auto model = models::load_model(test::test_data("models/stories260K-hf"), options);
    Optimizer optimizer(model->parameters(), {.rules = rules, .weight_decay = 0.1});
    for (int step = 0; step < 2; ++step) {
      for (nn::Entry& entry : model->parameters().entries())
        entry.shard.mutable_grad() = entry.shard.detach() * (beforehand ? 0.25 : 1.0);
      if (!beforehand) optimizer.scale_gradients(0.25);
      optimizer.step(0.01);
    }
    return test::weights_of(*model);
  };
  const std::vector<OptimizerRules> all = {
      {adamw({})}, {adamw({.amsgrad = true})}, {adamw({.coupled = true})}, {lion(0.9, 0.99)}, {muon({}), adamw({})}};
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(stepped(all[i], false) == stepped(all[i], true)) << i;
}

TEST(Optimizers, AnotherOnesCheckpointIsRefused) {
  test::LogLines log;
  const test::TemporaryFolder folder;
  trained(folder.path(), "{num_train_epochs: 1, max_training_steps: 2}");
  const std::string text = test::replaced(test::refusal([&] { trained(folder.path(), "{optimizer: muon}"); }),
                                          folder.path().string(), "DIR");
  EXPECT_EQ(text,
            "DIR/out/small/run-2: it cannot be continued with other settings: trainer.optimizer adamw -> muon\n"
            "    name another save_directory or model_name, or set resume_if_possible: false to start anew");
}

}  // namespace
}  // namespace easydel::train
