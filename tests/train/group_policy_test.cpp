// Methods that sample their own completions, as runs: grpo, gspo and rloo.
#include "easydel/train/group_policy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "train/sampled_run.h"

namespace easydel::train {
namespace {

using test::LogLines, test::TemporaryFolder;

const std::string rewards =
    "rewards: [{type: contains, words: [a, the, he]}, {type: repetition, weight: 0.5}, {type: answer}]";

using test::FinishedRun;

TrainerParts run_of(const std::filesystem::path& folder, const std::string& keys) {
  return test::sampled_run(folder, "trainer_type: grpo, total_batch_size: 8, num_return_sequences: 4, " + rewards, keys,
                           ", \"answer\": 3");
}

FinishedRun run(const std::filesystem::path& folder, const std::string& name, const std::string& keys) {
  return test::finished(run_of(folder, keys + ", model_name: " + name), folder, name);
}

std::optional<double> metric(const Value& line, const std::string& name) { return test::metric_of(line, name); }

// The steps learn from a window of two micro-batches twice, so the second step resumes inside of one.
TEST(GroupPolicy, ARunThatIsCutInsideAWindowGoesOnToTheByte) {
  const TemporaryFolder folder;
  for (const std::string keys :
       {"beta: 0.1, num_iterations: 2, steps_per_generation: 2, sync_ref_model: true, ref_model_sync_steps: 2, "
        "use_adaptive_entropy: true, entropy_coef: 0.01, entropy_target: 2",
        "trainer_type: rloo, num_iterations: 2, steps_per_generation: 2", "trainer_type: gspo, num_iterations: 3",
        "importance: sampled, top_k: 4, beta: 0.1, num_iterations: 2, steps_per_generation: 2"}) {
    const std::string tag = std::to_string(keys.size());
    const FinishedRun whole = run(folder.path(), "whole" + tag, keys + ", max_training_steps: 6");
    for (const int cut : {1, 2, 3}) {
      const std::string name = str("cut", tag, "_", cut);
      run(folder.path(), name, keys + str(", max_training_steps: ", cut));
      const FinishedRun rest = run(folder.path(), name, keys + ", max_training_steps: 6");
      EXPECT_TRUE(rest.weights == whole.weights) << keys << " cut at " << cut;
      EXPECT_EQ(rest.rollouts, whole.rollouts) << keys << " cut at " << cut;
    }
  }
}

TEST(GroupPolicy, SeveralMicroBatchesAreOneBatch) {
  const TemporaryFolder folder;
  for (const std::string loss : {"dapo", "grpo", "dr_grpo", "luspo", "cispo"}) {
    const std::string keys = "clip_grad: null, max_training_steps: 1, loss_type: " + loss;
    const auto metric_of = [&](const std::string& name, const std::string& more) {
      return run(folder.path(), name + loss, keys + more).metrics;
    };
    const auto one = metric_of("one", ""), two = metric_of("two", ", gradient_accumulation_steps: 2");
    ASSERT_EQ(one.size(), two.size());
    for (size_t i = 0; i < one.size(); ++i) {
      const double whole = *metric(one[i], "grad_norm"), parts = *metric(two[i], "grad_norm");
      EXPECT_NEAR(parts, whole, 1e-5 * whole) << loss;
    }
  }
}

TEST(GroupPolicy, ReportsRewardsLengthsAndThatTheSamplersProbabilitiesAreTheTrainers) {
  const TemporaryFolder folder;
  for (const std::string keys : {"max_training_steps: 2", "max_training_steps: 2, trainer_type: gspo, top_k: 5"}) {
    const FinishedRun found = run(folder.path(), str("n", keys.size()), keys);
    ASSERT_EQ(found.metrics.size(), 2u);
    for (const Value& line : found.metrics) {
      EXPECT_EQ(metric(line, "sampling/logp_difference"), 0.0) << to_json(line);
      for (const char* name : {"reward", "reward_std", "contains/mean", "completions/mean_length", "entropy"})
        EXPECT_TRUE(metric(line, name)) << name << " " << to_json(line);
    }
    EXPECT_EQ(std::ranges::count(found.rollouts, '\n'), 16);
    const Value first = parse_json(found.rollouts.substr(0, found.rollouts.find('\n')));
    for (const char* name : {"step", "prompt", "completion", "ids", "rewards", "advantage", "reason"})
      EXPECT_TRUE(first.find(name)) << name;
  }
}

std::string refused(const std::string& keys) {
  const TemporaryFolder folder;
  const LogLines log;
  return test::refusal([&] { Trainer trainer(run_of(folder.path(), keys)); });
}

// Ratios of the tokens that were left begin at 1 too, and the entropy over at most 3 tokens is at most log 3.
TEST(GroupPolicy, TakesImportanceOfTheTokensThatWereLeft) {
  const TemporaryFolder folder;
  const std::string truncated = "max_training_steps: 2, temperature: 1.5, top_k: 3, top_p: 0.9";
  for (const std::string method : {"grpo, beta: 0.1", "rloo", "gspo"}) {
    const std::string keys = truncated + ", trainer_type: " + method;
    const auto entropy = [&](const std::string& name, const std::string& more) {
      const FinishedRun found = run(folder.path(), name + method.substr(0, 4), keys + more);
      EXPECT_EQ(metric(found.metrics[0], "sampling/logp_difference").value_or(0), 0.0) << method;
      return *metric(found.metrics[0], "entropy");
    };
    EXPECT_GT(entropy("full", ""), 1.5) << method;
    EXPECT_LT(entropy("sampled", ", importance: sampled"), std::log(3.0)) << method;
  }
}

TEST(GroupPolicy, RefusesImportanceOfScoresThatPenaltiesChanged) {
  for (const std::string key : {"presence_penalty", "repetition_penalty"})
    EXPECT_EQ(refused(key + ": 1.2, importance: sampled"),
              "trainer.importance: is sampled, and " + key +
                  " changes the scores of tokens, so that completions are not drawn from the model's own "
                  "probabilities\n    leave " +
                  key + " out, or use importance: full");
  EXPECT_EQ(
      refused("generation_kwargs: {guidance_scale: 2}, importance: sampled"),
      "trainer.importance: is sampled, and generation_kwargs.guidance_scale changes the scores of tokens, so that "
      "completions are not drawn from the model's own probabilities\n    leave generation_kwargs.guidance_scale "
      "out, or use importance: full");
}

TEST(GroupPolicy, RefusesGroupsThatCannotBe) {
  EXPECT_EQ(
      refused("num_return_sequences: 1"),
      "trainer.num_return_sequences: a group of one completion has nothing to be compared with\n    give at least "
      "2");
  EXPECT_EQ(refused("num_return_sequences: 3"),
            "trainer.num_return_sequences: groups of 3 completions do not divide the 8 of a generation "
            "(total_batch_size counts completions: 8 in each of 1 micro-batches)\n    make total_batch_size a multiple "
            "of 3");
  EXPECT_EQ(refused("temperature: 0"),
            "trainer.temperature: is 0, so all completions of a prompt would be equal\n    give 1");
  EXPECT_EQ(refused("gradient_accumulation_steps: 2, steps_per_generation: 3"),
            "trainer.steps_per_generation: 3 micro-batches and 2 of an update (gradient_accumulation_steps) do not "
            "divide\n    make one a multiple of the other");
  EXPECT_EQ(refused("rewards: []"),
            "trainer.rewards: is missing, so no completion is worth more than another\n    name at least one, such as "
            "[{type: answer}], or give the section reward_model");
  EXPECT_EQ(
      refused("rewards: [{type: answer, answer_key: solution}]"),
      "trainer.rewards: answer: no row has a field 'solution' with the right answer\n    name the rows' own field "
      "by answer_key");
  EXPECT_EQ(
      refused("reward_weights: [1, 2]"),
      "trainer.reward_weights: has 2 weights for 3 rewards\n    give one weight for each entry of trainer.rewards");
}

// A reward that fails ends the run after a save of the steps before.
TEST(GroupPolicy, SavesWhenARewardFails) {
  const TemporaryFolder folder;
  const LogLines log;
  const std::string count =
      "n=0; while read line; do if [ $n -ge 8 ]; then exit 4; fi; echo \\\"{\\\\\\\"id\\\\\\\": "
      "$n, \\\\\\\"reward\\\\\\\": $n}\\\"; n=$((n+1)); done";
  Trainer trainer(run_of(
      folder.path(), "max_training_steps: 3, rewards: [{type: program, command: [/bin/sh, -c, \"" + count + "\"]}]"));
  const std::string text = test::refusal([&] { trainer.run(); });
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "trainer.rewards: program 'program': ended with exit status 4 with 8 completions to judge");
  EXPECT_TRUE(std::filesystem::exists(folder / "out/small/run-1/state.json"));
}

// The story model has 512 positions.
TEST(GroupPolicy, RefusesPromptsAndCompletionsWithoutRoom) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& keys) {
    return test::replaced(test::refusal([&] { Trainer(run_of(folder.path(), keys)); }), folder.path().string(), "DIR");
  };
  EXPECT_EQ(refused("max_completion_length: 512"),
            "trainer.max_completion_length: 512 new tokens leave no room for a prompt: the model has 512 positions\n"
            "    give at most 511");
  EXPECT_EQ(refused("max_prompt_length: 600"),
            "trainer.max_prompt_length: prompts of 600 tokens leave no room for a completion: the model has 512 "
            "positions\n    give at most 511");
  std::string prompt = "Once upon a time";
  while (prompt.size() < 4000) prompt += " there was a dog";
  test::write_file(folder / "prompts.jsonl",
                   "{\"prompt\": \"The cat\", \"answer\": 3}\n{\"prompt\": \"" + prompt + "\"}\n");
  EXPECT_EQ(refused("max_completion_length: 8"),
            "DIR/prompts.jsonl:2: a prompt of 512 tokens leaves no room for a completion: the model has 512 positions\n"
            "    drop the row, or set trainer.max_prompt_length to at most 511");
}

TEST(GroupPolicy, RefusesAReferenceOfAnotherShape) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& model) {
    TrainerParts parts = run_of(folder.path(), "beta: 0.1");
    const test::LogLines log;
    parts.side.reference.model = models::load_model(model, {});
    return test::refusal([&] { Trainer(std::move(parts)); });
  };
  const std::string remedy = "\n    give one of the same shape; without the section, it is the model as it starts";
  EXPECT_EQ(refused(test::test_data("models/stories-half").string()),
            "reference_model: it has 2 layers, and the trained model 5" + remedy);
  Value config = parse_file(test::test_data("models/stories260K-hf") / "config.json");
  config.set("intermediate_size", Value::integer(100));
  test::write_file(folder / "narrow/config.json", to_json(config));
  EXPECT_EQ(
      refused((folder / "narrow").string()),
      "reference_model: it has another shape than the trained model: model.layers.0.mlp.gate_proj.weight is [100, "
      "64] instead of [172, 64]" +
          remedy);
  config.set("attention_bias", Value::boolean(true));
  config.set("intermediate_size", Value::integer(172));
  test::write_file(folder / "biased/config.json", to_json(config));
  EXPECT_EQ(refused((folder / "biased").string()),
            "reference_model: it has another shape than the trained model, which has no "
            "model.layers.0.self_attn.o_proj.bias" +
                remedy);
}

}  // namespace
}  // namespace easydel::train
