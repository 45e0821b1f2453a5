#include "easydel/train/memory_plan.h"

#include <gtest/gtest.h>

namespace easydel::train {
namespace {

// 1000 bytes for each of 100 tokens, 10 parts of the model.
MemoryPlan example() {
  MemoryPlan plan;
  plan.weights = 40'000, plan.gradients = 40'000, plan.first_gradient = 10'000, plan.optimizer = 80'000;
  plan.rest = 30'000;
  plan.tokens = 100, plan.labelled = 100;
  plan.activations = {.fixed = 500, .per_token = 1000, .per_logit_row = 100, .rows_in_chunk = 20};
  return plan;
}

TEST(MemoryPlan, AddsWhatIsThereAtTheSameTime) {
  MemoryPlan plan = example();
  EXPECT_EQ(plan.activation_bytes(), 500 + 100'000 + 2000);
  // The other gradients come when the activations of their layers are gone.
  EXPECT_EQ(plan.total(), 40'000 + 80'000 + 30'000 + 10'000 + 102'500);
  plan.micro_batches = 2;  // the gradients of the first are there while the second runs
  EXPECT_EQ(plan.total(), 40'000 + 80'000 + 30'000 + 40'000 + 102'500);
  plan.micro_batches = 1, plan.tokens = plan.labelled = 1;
  EXPECT_EQ(plan.total(), 40'000 + 80'000 + 30'000 + 40'000 + 500);
  plan.before = 300'000;
  EXPECT_EQ(plan.total(), 300'000);
}

TEST(MemoryPlan, SaysEachPart) {
  MemoryPlan plan = example();
  plan.side_models = 1'500'000'000;
  EXPECT_EQ(plan.text(),
            "about 1.50 GB: weights 0.0 MB, gradients 0.0 MB, optimizer 0.1 MB, activations 0.1 MB, reference 1.50 GB, "
            "data and program 0.0 MB");
}

TEST(MemoryPlan, KnowsWhichKeysWouldMakeItFit) {
  const MemoryPlan plan = example();
  EXPECT_EQ(what_would_fit(plan, 220'000, {2, 4, 8}, 400, false),
            (std::vector<std::string>{"trainer.gradient_accumulation_steps: 4",
                                      "base_config.values.gradient_checkpointing: nothing_saveable",
                                      "trainer.max_length: 200", "trainer.optimizer: adafactor"}));
  EXPECT_EQ(what_would_fit(plan, 195'000, {2, 4, 8}, 100, true),
            (std::vector<std::string>{"trainer.optimizer: adafactor"}));
  EXPECT_TRUE(what_would_fit(plan, 100'000, {2, 4, 8}, 400, false).empty());
}

}  // namespace
}  // namespace easydel::train
