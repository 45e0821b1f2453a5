#include "easydel/train/method_configs.h"

#include <gtest/gtest.h>

#include "easydel/base/names.h"
#include "easydel/train/dpo_config.h"
#include "easydel/train/grpo_config.h"
#include "easydel/train/method.h"
#include "easydel/train/sft_config.h"

namespace easydel::train {
namespace {

struct Read {
  TrainerSection section;
  std::string problems, notes;
};

Read read(const std::string& yaml) {
  Read out;
  Value document = Value::map();
  const config::Problems problems = config::read(parse_yaml(yaml), out.section, "run.yaml");
  if (!problems.empty()) out.problems = problems.text();
  for (const std::string& note : problems.notes()) out.notes += note + "\n";
  return out;
}

TEST(MethodConfigs, EveryMethodHasItsKeysAndTheListsAreAlphabetical) {
  const auto configs = method_configs();
  const auto all = methods();
  for (size_t i = 1; i < configs.size(); ++i) EXPECT_TRUE(configs[i - 1].name < configs[i].name) << configs[i].name;
  std::vector<std::string_view> built, there;
  for (const MethodConfig& config : configs) built.push_back(config.name);
  for (const auto& method : all) there.push_back(method.name);
  EXPECT_EQ(built, there);
}

TEST(MethodConfigs, KeysOfAMethodAreChecked) {
  EXPECT_EQ(read("trainer_type: agentic-moshpit\nepsilon: -1\n").problems,
            "run.yaml:2:10: epsilon: -1 is out of range\n    expected a number of at least 0 (default 0.2)\n"
            "1 problem in run.yaml; nothing was run.");
  const Read orpo = read("trainer_type: orpo\nbeta: 0.2\nlambda_orpo: 0.3\n");
  EXPECT_NE(orpo.problems.find("is given twice, as 'beta' and as 'lambda_orpo'"), std::string::npos) << orpo.problems;
  const Read grpo = read("trainer_type: grpo\ngroup_size: 4\nkl_coef: 0.1\nscale_rewards: false\n");
  ASSERT_EQ(grpo.section.common.trainer_type, "grpo");
  const auto& config = grpo.section.own_as<GrpoConfig>();
  EXPECT_EQ(config.rollouts.num_return_sequences, 4);
  EXPECT_EQ(config.own.beta, 0.1);
  EXPECT_EQ(config.own.scale_rewards, RewardScale::none);
  EXPECT_EQ(grpo.section.common.learning_rate, 1e-6);
}

// Each method whose divergence from a reference can be weighted with 0 has none then.
TEST(MethodConfigs, SayWhetherTheRunHasAReference) {
  const auto has = [](const std::string& yaml) {
    const Read run = read("trainer_type: " + yaml + "\n");
    EXPECT_EQ(run.problems, "");
    return run.section.has_reference();
  };
  for (const std::string name : {"agentic_moshpit", "gfpo", "grpo", "gspo", "rloo", "rlvr", "sdpo"}) {
    EXPECT_TRUE(has(name + "\nbeta: 0.1")) << name;
    EXPECT_FALSE(has(name + "\nbeta: 0")) << name;
  }
  for (const std::string name : {"bco", "kto", "dpo", "ppo", "xpo", "nash_md", "online_dpo"})
    EXPECT_TRUE(has(name)) << name;
  EXPECT_FALSE(has("dpo\nreference_free: true"));
  for (const std::string name : {"sft", "orpo", "cpo", "gkd"}) EXPECT_FALSE(has(name)) << name;
}

TEST(MethodConfigs, AReferenceThatIsNotThereCannotMove) {
  for (const std::string name : {"agentic_moshpit", "gfpo", "grpo", "gspo", "rloo", "rlvr", "sdpo"})
    EXPECT_EQ(read("trainer_type: " + name + "\nbeta: 0\nsync_ref_model: true\n").problems,
              "run.yaml:3:17: sync_ref_model: there is no reference model to move with beta: 0\n    give a beta "
              "above 0, or leave it out\n1 problem in run.yaml; nothing was run.")
        << name;
  EXPECT_EQ(read("trainer_type: grpo\nbeta: 0\nsync_ref_model: false\n").problems, "");
}

TEST(MethodConfigs, AMethodReadsItsOwnKeysBesideTheCommonOnes) {
  const Read run =
      read("trainer_type: dpo\nbeta: 0.2\nlearning_rate: 1e-5\nloss_type: [sigmoid, sft]\nloss_weights: [1, 0.5]\n");
  EXPECT_EQ(run.problems, "");
  EXPECT_EQ(run.section.common.learning_rate, 1e-5);
  EXPECT_EQ(run.section.common.max_length, 512);  // a method's own default of a common key
  const auto& dpo = run.section.own_as<DpoConfig>();
  EXPECT_EQ(dpo.beta, 0.2);
  EXPECT_EQ(dpo.loss_type.size(), 2u);
  EXPECT_THROW(run.section.own_as<SftConfig>(), Bug);
}

// The guide's block: keys of several methods in one section.
TEST(MethodConfigs, KeysOfOtherMethodsHaveNoEffectAndThatIsSaid) {
  const Read run = read(
      "trainer_type: sft\nlearning_rate: 2.0e-5\nnum_train_epochs: 3\ntotal_batch_size: "
      "32\ngradient_accumulation_steps: 4\n"
      "warmup_steps: 100\nweight_decay: 0.01\nclip_grad: 1.0\noptimizer: adamw\nscheduler: cosine\nlog_steps: 10\n"
      "evaluation_steps: 500\nsave_steps: 500\nsave_directory: ./output\nsave_total_limit: 3\nbeta: 0.1\n"
      "label_smoothing: 0.0\ngroup_size: 4\nkl_coef: 0.1\n");
  EXPECT_EQ(run.problems, "");
  EXPECT_NE(run.notes.find("beta"), std::string::npos) << run.notes;
  EXPECT_NE(run.notes.find("group_size"), std::string::npos) << run.notes;
  EXPECT_EQ(run.section.common.scheduler, Scheduler::cosine);
}

TEST(MethodConfigs, AliasesOfTheGuide) {
  const Read run = read("scheduler: constant\nmax_sequence_length: 77\n");
  EXPECT_EQ(run.problems, "");
  EXPECT_EQ(run.section.common.scheduler, Scheduler::none);
  EXPECT_EQ(run.section.common.max_length, 77);
  EXPECT_NE(run.notes.find("max_sequence_length"), std::string::npos);
}

TEST(MethodConfigs, AnUnknownMethodIsRefused) {
  EXPECT_EQ(read("trainer_type: dpp\n").problems,
            "run.yaml:1:15: trainer_type: 'dpp' is not a training method\n    did you mean 'dpo'?\n1 problem in "
            "run.yaml; nothing was run.");
}

TEST(MethodConfigs, RulesOverSeveralKeys) {
  EXPECT_EQ(
      read("total_batch_size: 6\ngradient_accumulation_steps: 4\n").problems,
      "run.yaml:1:19: total_batch_size: an update of 6 examples does not divide into 4 accumulation steps\n"
      "    make it a multiple of gradient_accumulation_steps, such as 8\n1 problem in run.yaml; nothing was run.");
  EXPECT_EQ(
      read("training_time_limit: soon\n").problems,
      "run.yaml:1:22: training_time_limit: 'soon' is not a duration\n    use 30s, 50min, 23h or 1h30m\n1 problem in "
      "run.yaml; nothing was run.");
  EXPECT_EQ(read("lmhead_chunksize: 64\nloss_config: {chunk_token_size: 32}\n").problems,
            "run.yaml:1:19: lmhead_chunksize: 64 here and 32 in loss_config.chunk_token_size\n"
            "    they are the same thing; keep one of them\n1 problem in run.yaml; nothing was run.");
  EXPECT_EQ(
      read("learning_rate_end: 1\nscheduler: linear\n").problems,
      "run.yaml:1:20: learning_rate_end: 1 is above learning_rate, 2e-05\n1 problem in run.yaml; nothing was run.");
}

TEST(MethodConfigs, WhatAMethodDoesNotReadIsNamed) {
  const std::string notes =
      read("trainer_type: dpo\npacking: true\nloss_config: {z_loss: 0.1, chunk_token_size: 4}\n").notes;
  EXPECT_NE(notes.find("packing (a key of other methods than dpo)"), std::string::npos) << notes;
  EXPECT_NE(notes.find("loss_config.z_loss (with trainer_type dpo)"), std::string::npos) << notes;
  EXPECT_EQ(notes.find("chunk_token_size"), std::string::npos) << notes;
}

TEST(MethodConfigs, ATrainingStepRefusesWhatOnlyALossOnLogitsHas) {
  const auto refused = [](const std::string& loss) { return read("loss_config: {" + loss + "}\n").problems; };
  const std::string end = "\n1 problem in run.yaml; nothing was run.";
  EXPECT_EQ(refused("reduction: none"),
            "run.yaml:1:26: loss_config.reduction: a training step needs one number\n    use mean, sum or null" + end);
  EXPECT_EQ(
      refused("divide_weight_sum: true, loss_normalizing_factor: NUM_TOTAL_TARGET_TOKENS"),
      "run.yaml:1:34: loss_config.divide_weight_sum: dividing twice with NUM_TOTAL_TARGET_TOKENS is not built yet" +
          end);
  EXPECT_EQ(refused("num_labels: 2"),
            "run.yaml:1:27: loss_config.num_labels: training classifiers is not built yet" + end);
  EXPECT_EQ(refused("classification_problem_type: regression"),
            "run.yaml:1:44: loss_config.classification_problem_type: training classifiers is not built yet" + end);
}

TEST(MethodConfigs, AMethodStatesWhatItLearnsFrom) {
  for (const MethodConfig& method : method_configs()) EXPECT_FALSE(method.facts.rows.empty()) << method.name;
}

TEST(MethodConfigs, StateWhatTheMethodsAre) {
  using enum data::RowKind;
  const MethodFacts& sft = find_method_config("sft")->facts;
  EXPECT_TRUE(sft.rows.has(text) && sft.rows.has(messages) && sft.rows.has(prompt_completion));
  EXPECT_FALSE(sft.rows.has(preference));
  EXPECT_TRUE(sft.packs && sft.token_loss && !sft.samples);
  EXPECT_EQ(sft.task, models::Task::causal_lm);
  EXPECT_EQ(sft.reference, SideModelUse::none);
  const MethodFacts& dpo = find_method_config("dpo")->facts;
  EXPECT_TRUE(dpo.rows.has(preference) && !dpo.rows.has(text));
  EXPECT_FALSE(dpo.packs || dpo.token_loss || dpo.samples);
  EXPECT_EQ(dpo.reference, SideModelUse::optional);
  EXPECT_EQ(dpo.teacher, SideModelUse::none);
}

TEST(MethodConfigs, TheKeysOfATokensLossCountForMethodsThatHaveOne) {
  const std::string keys = "loss_config: {z_loss: 0.1}\n";
  EXPECT_EQ(read("trainer_type: sft\n" + keys).notes.find("z_loss"), std::string::npos);
  EXPECT_NE(read("trainer_type: dpo\n" + keys).notes.find("loss_config.z_loss (with trainer_type dpo)"),
            std::string::npos);
}

TEST(MethodConfigs, AMethodsKeysSayWhatItsDataAre) {
  const Read run = read("dataset_text_field: story\npacking: true\npacking_strategy: wrapped\neval_packing: false\n");
  const DataKeys keys = run.section.data_keys();
  EXPECT_EQ(keys.text_field, "story");
  EXPECT_TRUE(keys.packing);
  EXPECT_EQ(keys.packing_strategy, data::Packing::wrapped);
  EXPECT_EQ(keys.eval_packing, false);
  EXPECT_EQ(read("trainer_type: dpo").section.data_keys().text_field, std::nullopt);
}

TEST(MethodConfigs, AMethodIsChosenByItsKeys) {
  TrainerSection section;
  auto keys = std::make_shared<DpoConfig>();
  keys->beta = 0.7;
  section.use<DpoConfig>(keys);
  EXPECT_EQ(section.common.trainer_type, "dpo");
  EXPECT_EQ(section.own_as<DpoConfig>().beta, 0.7);
}

TEST(MethodConfigs, WhatIsWrittenReadsBack) {
  const Read run = read("trainer_type: dpo\nbeta: 0.3\nsave_steps: 5\n");
  const Value written = config::write(run.section);
  Read again = read(to_yaml(written));
  EXPECT_EQ(again.problems, "");
  EXPECT_TRUE(config::write(again.section) == written);
  EXPECT_EQ(again.section.own_as<DpoConfig>().beta, 0.3);
}

}  // namespace
}  // namespace easydel::train
