#include "easydel/train/episode_advantages.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/isclose.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/nanmean.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include "easydel/base/error.h"

namespace easydel::train {
namespace {

constexpr double smallest_deviation = 1e-4;  // added to what is divided by

// The deviation of a population, over a dimension that stays.
Tensor population_deviation(const Tensor& values, int64_t dimension) {
  const Tensor mean = at::nanmean(values, {dimension}, true);
  return at::nanmean((values - mean).square(), {dimension}, true).sqrt();
}

Tensor is_zero(const Tensor& deviation) { return at::isclose(deviation, at::zeros_like(deviation)); }

// Discounted returns less their group's mean, by its deviation.
Tensor turn_advantages(const RewardTable& table, double gamma, bool whole_rewards) {
  check(table.turns.size() == size_t(table.values.size(0)), "episodes without the rewards of their turns");
  RewardTable others = table;
  others.weights.at(0) = 0;  // the environment's rewards are those of the turns
  const Tensor extra = weighted_rewards(others).nan_to_num(0).to(at::kDouble).contiguous();
  std::vector<double> returns;
  for (size_t i = 0; i < table.turns.size(); ++i) {
    std::vector<double> turns = table.turns[i];
    if (turns.empty()) turns.push_back(0);
    if (whole_rewards) turns.back() += extra.const_data_ptr<double>()[i];
    returns.push_back(discounted_return(turns, gamma));
  }
  const Tensor grouped = at::tensor(returns, at::kDouble).view({-1, table.group});
  const Tensor deviation = population_deviation(grouped, 1);
  const Tensor divisor = deviation.masked_fill(is_zero(deviation), 1.0) + smallest_deviation;
  return ((grouped - grouped.mean(1, true)) / divisor).flatten().to(at::kFloat);
}

}  // namespace

double discounted_return(const std::vector<double>& turns, double gamma) {
  double out = 0;
  for (auto turn = turns.rbegin(); turn != turns.rend(); ++turn) out = *turn + gamma * out;
  return out;
}

Advantages episode_advantages(const RewardTable& table, const AgenticMoshpitKeys& keys, RewardScale scale,
                              RewardAggregation aggregation) {
  Advantages out = group_advantages(table, scale, aggregation);
  const double gamma = keys.step_reward_gamma;
  switch (keys.advantage_estimator) {
    using enum AdvantageEstimator;
    case grpo:
      break;
    case reinforce: {
      const Tensor rewards = weighted_rewards(table);
      const Tensor deviation = population_deviation(rewards, 0);
      const Tensor scaled = (rewards - at::nanmean(rewards)) / (deviation + smallest_deviation);
      out.values = scaled.masked_fill(is_zero(deviation), 0).nan_to_num(0);
      break;
    }
    case gigpo:
      out.values = keys.episode_reward_weight * out.values +
                   keys.step_reward_weight * turn_advantages(table, gamma, /*whole_rewards=*/false);
      break;
    case step_reinforce:
    case agentic_reinforce:
      out.values = turn_advantages(table, gamma, /*whole_rewards=*/true);
      break;
  }
  return out;
}

}  // namespace easydel::train
