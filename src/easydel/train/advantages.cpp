#include "easydel/train/advantages.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/isclose.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/nanmean.h>
#include <ATen/ops/nansum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "easydel/base/error.h"

namespace easydel::train {
namespace {

constexpr double smallest_deviation = 1e-4;  // added to what is divided by
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The sample standard deviation over a dimension, which stays; NaN where fewer than two numbers count.
Tensor deviation(const Tensor& values, int64_t dimension) {
  const Tensor mean = at::nanmean(values, {dimension}, true);
  const Tensor variance = at::nanmean((values - mean).square(), {dimension}, true);
  const Tensor count = at::isnan(values).logical_not().sum({dimension}, true).to(at::kFloat);
  return (variance * at::where(count.gt(1), count / (count - 1), at::full_like(count, nan))).sqrt();
}

Tensor deviation_of_all(const Tensor& values) {
  return values.numel() > 1 ? deviation(values.flatten(), 0).squeeze(0) : at::zeros_like(values).squeeze(0);
}

void add_metrics(Advantages& out, const RewardTable& table, const Tensor& deviations) {
  const auto add = [&](const std::string& name, const Tensor& scalar) {
    if (const auto value = scalar.item<double>(); std::isfinite(value)) out.metrics.push_back({name, value, 1});
  };
  for (size_t i = 0; i < table.names.size(); ++i) {
    const Tensor values = table.values.select(1, int64_t(i));
    add("rewards/" + table.names[i] + "/mean", at::nanmean(values));
    add("rewards/" + table.names[i] + "/std", deviation_of_all(values));
  }
  const Tensor rewards = weighted_rewards(table);
  add(reward_word, at::nanmean(rewards));
  add("reward_std", deviation_of_all(rewards));
  add("frac_reward_zero_std", at::isclose(deviations, at::zeros_like(deviations)).to(at::kFloat).mean());
}

void check_table(const RewardTable& table) {
  check(table.values.dim() == 2 && table.values.size(1) == int64_t(table.names.size()) &&
            table.weights.size() == table.names.size() && table.group > 0 && table.values.size(0) % table.group == 0,
        "rewards are ", table.values.sizes(), " for ", table.names.size(), " names in groups of ", table.group);
}

Tensor weights_of(const RewardTable& table) { return at::tensor(table.weights, at::kDouble).to(at::kFloat); }

}  // namespace

std::vector<Metric> length_metrics(const std::vector<CompletionLength>& lengths) {
  double all = 0, cut = 0, ended = 0, least = 0, most = 0, min_ended = 0, max_ended = 0;
  for (const CompletionLength& one : lengths) {
    const auto length = double(one.tokens);
    least = all == 0 ? length : std::min(least, length), most = std::max(most, length);
    all += length;
    if (!one.ended) {
      cut += 1;
      continue;
    }
    min_ended = ended == 0 ? length : std::min(min_ended, length), max_ended = std::max(max_ended, length);
    ended += length;
  }
  const auto count = double(lengths.size());
  std::vector<Metric> out;
  for (const auto& [name, value] : {std::pair{"mean_length", all / count},
                                    {"min_length", least},
                                    {"max_length", most},
                                    {"clipped_ratio", cut / count},
                                    {"mean_terminated_length", ended / std::max(count - cut, 1.0)},
                                    {"min_terminated_length", min_ended},
                                    {"max_terminated_length", max_ended}})
    out.push_back({str("completions/", name), value, 1});
  return out;
}

RewardTable part_of(const RewardTable& table, const std::vector<size_t>& places, int64_t group) {
  RewardTable out = table;
  std::vector<int64_t> kept(places.begin(), places.end());
  out.values = table.values.index_select(0, at::tensor(kept, at::kLong));
  out.group = group;
  out.rows.clear();
  out.turns.clear();
  for (const size_t place : places) {
    if (!table.rows.empty()) out.rows.push_back(table.rows[place]);
    if (!table.turns.empty()) out.turns.push_back(table.turns[place]);
  }
  return out;
}

Tensor weighted_rewards(const RewardTable& table) {
  Tensor sum = at::nansum(table.values * weights_of(table).unsqueeze(0), {1});
  if (table.clip) sum = sum.clamp(-*table.clip, *table.clip);
  return sum.masked_fill(at::isnan(table.values).all(1), nan);
}

Advantages group_advantages(const RewardTable& table, RewardScale scale, RewardAggregation aggregation) {
  check_table(table);
  const int64_t group = table.group;
  Advantages out;
  Tensor deviations;
  if (aggregation == RewardAggregation::normalize_then_sum) {
    const Tensor grouped = table.values.view({-1, group, table.values.size(1)});
    const Tensor spread = group > 1 ? deviation(grouped, 1) : at::zeros_like(grouped);
    const Tensor each = ((grouped - at::nanmean(grouped, {1}, true)) / (spread + smallest_deviation)).flatten(0, 1);
    const Tensor rewards = weighted_rewards({table.names, table.weights, each, group});
    deviations = deviation_of_all(rewards).expand_as(rewards);
    out.values = (rewards - at::nanmean(rewards)) / (deviations + smallest_deviation);
  } else {
    const Tensor rewards = weighted_rewards(table), grouped = rewards.view({-1, group});
    if (scale == RewardScale::batch)
      deviations = deviation_of_all(rewards).expand_as(rewards);
    else
      deviations = (group > 1 ? deviation(grouped, 1) : at::zeros_like(grouped)).expand_as(grouped).flatten();
    out.values = (grouped - at::nanmean(grouped, {1}, true)).flatten();
    if (scale != RewardScale::none) out.values = out.values / (deviations + smallest_deviation);
  }
  out.values = at::nan_to_num(out.values, 0.0);
  add_metrics(out, table, deviations);
  return out;
}

Advantages leave_one_out(const RewardTable& table, const LeaveOneOut& options) {
  check_table(table);
  Tensor rewards = weighted_rewards(table);
  if (!options.clip_range.empty()) rewards = rewards.clamp(options.clip_range[0], options.clip_range[1]);
  if (options.penalty.defined()) rewards = rewards - options.penalty;
  const Tensor grouped = rewards.view({-1, table.group});
  const Tensor deviations = table.group > 1 ? deviation(grouped, 1).squeeze(1) : at::zeros_like(grouped).squeeze(1);
  Advantages out;
  if (table.group > 1) {
    const Tensor others = at::isnan(grouped).logical_not().sum({1}, true) - 1;
    const Tensor baseline = (at::nansum(grouped, {1}, true) - grouped) / others;
    out.values = (grouped - baseline).flatten();
  } else {
    out.values = at::zeros_like(rewards);
  }
  if (options.normalize)
    out.values = (out.values - at::nanmean(out.values)) / (deviation_of_all(out.values) + smallest_deviation);
  out.values = at::nan_to_num(out.values, 0.0);
  add_metrics(out, table, deviations);
  return out;
}

}  // namespace easydel::train
