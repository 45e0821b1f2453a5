#include "easydel/train/memory_plan.h"

#include <gtest/gtest.h>

#include <tuple>

#include "easydel/base/error.h"

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
  plan.activations.last_layer = 10'000;  // more than what the gradients of all other layers leave
  EXPECT_EQ(plan.total(), 40'000 + 80'000 + 30'000 + 40'000 + 500 + 10'000);
  plan.completions = 60'000;  // their keys and values are gone when the step begins
  EXPECT_EQ(plan.total(), 40'000 + 80'000 + 30'000 + 60'000);
  plan.completions = 0;
  plan.before = 300'000;
  EXPECT_EQ(plan.total(), 300'000);
  plan.before = 0;
  plan.tokens = plan.labelled = 100, plan.pairs = 50 * 50 * 2, plan.activations.per_pair = 4;
  EXPECT_EQ(plan.activation_bytes(), 500 + 100'000 + 2000 + 20'000);
  plan.longest_pairs = 50 * 50, plan.activations.per_longest_pair = 2;
  EXPECT_EQ(plan.activation_bytes(), 500 + 100'000 + 2000 + 20'000 + 5'000);
}

TEST(MemoryPlan, SaysEachPart) {
  MemoryPlan plan = example();
  plan.side_models = 1'500'000'000;
  plan.completions = 2'000'000;
  EXPECT_EQ(plan.text(),
            "about 1.50 GB: weights 0.0 MB, gradients 0.0 MB, optimizer 0.1 MB, activations 0.1 MB, keys and "
            "values of completions 2.0 MB, reference 1.50 GB, data and program 0.0 MB");
}

TEST(MemoryPlan, KnowsWhichKeysWouldMakeItFit) {
  const MemoryPlan plan = example();
  const auto keys = [](const char* accumulation, std::vector<std::string> more) {
    std::vector<std::string> out{str("trainer.gradient_accumulation_steps: ", accumulation),
                                 "base_config.values.gradient_checkpointing: nothing_saveable",
                                 "trainer.max_length: 200"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  const RunChoices choices{{2, 4, 8}, 400, false, true};
  EXPECT_EQ(what_would_fit(plan, 220'000, choices), keys("4", {"trainer.optimizer: adafactor"}));
  EXPECT_EQ(what_would_fit(plan, 250'000, choices), keys("2", {"loader.dtype: bf16", "trainer.optimizer: adafactor"}));
  EXPECT_EQ(what_would_fit(plan, 195'000, {{2, 4, 8}, 100, true}),
            (std::vector<std::string>{"trainer.optimizer: adafactor"}));
  EXPECT_TRUE(what_would_fit(plan, 100'000, {{2, 4, 8}, 400}).empty());
  RunChoices sampled = choices;
  sampled.length_key = "trainer.max_completion_length";
  EXPECT_EQ(what_would_fit(plan, 220'000, sampled).at(2), "trainer.max_completion_length: 200");
  EXPECT_EQ(micro_batches_of(12, 2), (std::vector<int64_t>{2, 3, 6}));
  EXPECT_EQ(micro_batches_of(12, 5), (std::vector<int64_t>{}));
  EXPECT_EQ(micro_batches_of(int64_t{1} << 40, 1).size(), 40u);
}

TEST(ActivationCount, ReadsTheShapesOfEachKindOfConfig) {
  const auto shapes = [](const char* json) { return layer_shapes(parse_json(json)); };
  const LayerShapes llama = shapes(
      R"({"num_hidden_layers": 30, "hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9,
          "num_key_value_heads": 3, "head_dim": 64})");
  EXPECT_EQ(std::tuple(llama.layers, llama.hidden, llama.inner, llama.query, llama.key, llama.heads),
            std::tuple(30, 576, 1536, 576, 192, 9));
  const LayerShapes gpt2 = shapes(R"({"n_layer": 12, "n_embd": 768, "n_head": 12, "n_inner": null})");
  EXPECT_EQ(std::tuple(gpt2.layers, gpt2.inner, gpt2.query, gpt2.key), std::tuple(12, 3072, 768, 768));
  const LayerShapes experts = shapes(
      R"({"num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 99, "num_attention_heads": 2,
          "num_experts_per_tok": 4, "moe_intermediate_size": 6, "shared_expert_intermediate_size": 5})");
  EXPECT_EQ(experts.inner, 29);
  EXPECT_FALSE(shapes("{}").is_known());
  EXPECT_EQ(counted_activations({}, {}).per_token, 0);

  StepSetting setting{.vocabulary = 1000};
  const double all = counted_activations(llama, setting).per_token;
  EXPECT_EQ(all, 30.0 * 4 * (3 * 576 + 2 * 576 + 2 * 192 + 3 * 1536));
  setting.element_bytes = 2;
  EXPECT_EQ(counted_activations(llama, setting).per_token, all / 2);
  EXPECT_EQ(counted_activations(llama, setting).per_pair, 0);
  setting.keeps_scores = true;
  EXPECT_EQ(counted_activations(llama, setting).per_pair, 4.0 * 9 * 30);
  EXPECT_EQ(counted_activations(llama, setting).per_longest_pair, 4.0 * 9 * 2);
  setting.checkpointing = nn::Checkpointing::nothing_saveable;
  EXPECT_LT(counted_activations(llama, setting).per_token, all / 2 / 5);
}

}  // namespace
}  // namespace easydel::train
