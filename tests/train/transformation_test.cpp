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
  EXPECT_TRUE(read("{optimizer: muon}").optimizer.rules.others) << "what is not a matrix";
  EXPECT_FALSE(read("{optimizer: lion}").optimizer.rules.others);
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
