#include "easydel/train/transformation.h"

#include <gtest/gtest.h>

#include <ATen/ops/ones.h>

#include "easydel/config/fields.h"

namespace easydel::train {
namespace {

Transformation read(const std::string& keys, int64_t steps = 10) {
  TrainerConfig config;
  config::read(parse_yaml(keys), config, "trainer").throw_if_any();
  return transformation_of(config, steps);
}

TEST(Transformation, HasTheScheduleOfTheKeys) {
  const Schedule schedule =
      read("{learning_rate: 0.5, learning_rate_end: 0.1, scheduler: linear, warmup_steps: 2}").schedule;
  EXPECT_EQ(schedule.at(0), 0.0);
  EXPECT_EQ(schedule.at(1), 0.25);
  EXPECT_EQ(schedule.at(2), 0.5);
  EXPECT_NEAR(schedule.at(10), 0.1, 1e-12);
  EXPECT_EQ(read("{learning_rate: 0.5}").schedule.at(9), 0.5) << "constant";
  EXPECT_EQ(read("{scheduler: cosine}").schedule.shape, Schedule::Shape::cosine);
}

TEST(Transformation, HasTheSchedulesOfTransformersWords) {
  const auto rates = [](const std::string& keys) {
    const Schedule schedule = read("{learning_rate: 1.0, " + keys + "}").schedule;
    return std::pair(schedule.at(5), schedule.at(9));
  };
  using Rates = std::pair<double, double>;
  EXPECT_EQ(rates("scheduler: polynomial, scheduler_kwargs: {power: 2, lr_end: 0}").first, 0.25);
  EXPECT_EQ(rates("scheduler: wsd, scheduler_kwargs: {num_decay_steps: 2, decay_type: linear}"), (Rates{1.0, 0.5}));
  EXPECT_NEAR(rates("scheduler: cosine_with_min_lr, scheduler_kwargs: {min_lr_rate: 0.5}").first, 0.75, 1e-12);
  EXPECT_NEAR(rates("scheduler: cosine_with_restarts, scheduler_kwargs: {num_cycles: 2}").first, 1.0, 1e-12);
  EXPECT_EQ(rates("scheduler: inverse_sqrt, scheduler_kwargs: {timescale: 3}").second, 0.5);
  EXPECT_EQ(rates("scheduler: linear, warmup_ratio: 0.55").first, 5.0 / 6) << "6 of 10 steps";
  EXPECT_EQ(rates("scheduler: reduce_on_plateau, do_eval: true"), (Rates{1.0, 1.0}));
}

TEST(Transformation, HasGroupsOfParameters) {
  const auto groups =
      read("{learning_rate: 0.5, learning_rates: [{pattern: a, rate: 0.1}, {pattern: b, weight_decay: 0}]}")
          .optimizer.groups;
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].rate, 0.2);
  EXPECT_FALSE(groups[0].weight_decay);
  EXPECT_EQ(groups[1].rate, 1);
  EXPECT_EQ(groups[1].weight_decay, 0.0);
}

TEST(Transformation, HasTheDecayAndTheLimitOfTheKeys) {
  const Transformation plain = read("{}");
  EXPECT_FALSE(plain.clip_grad);
  EXPECT_FALSE(plain.optimizer.decay_pattern);
  const Transformation given = read("{clip_grad: 0.5, weight_decay: 0.25, weight_decay_pattern: mlp}");
  EXPECT_EQ(given.clip_grad, 0.5);
  EXPECT_EQ(given.optimizer.weight_decay, 0.25);
  EXPECT_EQ(given.optimizer.decay_pattern, "mlp");
}

// What a rule keeps of a matrix tells which one it is.
std::vector<std::string> states(const std::string& optimizer) {
  const OptimizerRules rules = read("{optimizer: " + optimizer + "}").optimizer.rules;
  std::vector<std::string> names;
  for (const auto& [name, state] : rules.rule->start(at::ones({4, 4}))) names.push_back(name);
  return names;
}

TEST(Transformation, HasTheRuleOfEachOptimizer) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(states("adamw"), (Names{"mean", "square"}));
  EXPECT_EQ(states("lion"), Names{"mean"});
  EXPECT_EQ(states("adafactor"), (Names{"column", "row"}));
  EXPECT_EQ(states("mars"), (Names{"last", "mean", "square"}));
  EXPECT_EQ(states("muon"), Names{"momentum"});
  EXPECT_EQ(states("rmsprop"), Names{"square"});
  EXPECT_EQ(states("sgd"), Names{});
  EXPECT_EQ(states("adagrad"), Names{"square"});
  EXPECT_EQ(states("adadelta"), (Names{"change", "square"}));
  EXPECT_EQ(states("adamax"), (Names{"mean", "most"}));
  EXPECT_EQ(states("nadam"), (Names{"mean", "product", "square"}));
  EXPECT_EQ(states("radam"), (Names{"mean", "square"}));
  EXPECT_EQ(states("ademamix"), (Names{"mean", "slow", "square"}));
  EXPECT_EQ(states("adamw_8bit"), (Names{"mean", "square"})) << "fewer than 4096 elements";
  EXPECT_EQ(states("lion_8bit"), Names{"mean"});
  EXPECT_EQ(states("ademamix_8bit"), (Names{"mean", "slow", "square"}));
  EXPECT_EQ(states("schedule_free_adamw"), (Names{"rate", "square", "weight_sum", "z"}));
  EXPECT_TRUE(read("{optimizer: muon}").optimizer.rules.others) << "what is not a matrix";
  EXPECT_FALSE(read("{optimizer: lion}").optimizer.rules.others);
  EXPECT_FALSE(read("{optimizer: adamw_8bit}").optimizer.rules.embeddings);
  EXPECT_TRUE(
      read("{optimizer: adamw_8bit, extra_optimizer_kwargs: {stable_embedding: true}}").optimizer.rules.embeddings);
}

// The first update of a rule that averages gradients depends on its betas.
TEST(Transformation, GivesARuleItsArguments) {
  const auto updated = [](const std::string& keys) {
    const OptimizerRules rules = read(keys).optimizer.rules;
    Tensor value = at::ones({2, 2});
    const Tensor gradient = at::ones({2, 2});
    OptimizerStates states = rules.rule->start(value);
    rules.rule->update({.value = value, .gradient = gradient, .states = states, .step = 1, .rate = 0.5});
    return states.at("mean").sum().item<double>();
  };
  EXPECT_NEAR(updated("{optimizer: adamw}"), 4 * 0.1, 1e-6);
  EXPECT_NEAR(updated("{optimizer: adamw, extra_optimizer_kwargs: {b1: 0.5}}"), 4 * 0.5, 1e-6);
}

}  // namespace
}  // namespace easydel::train
