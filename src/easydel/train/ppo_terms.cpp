#include "easydel/train/ppo_terms.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

namespace easydel::train {

Tensor whitened(const Tensor& values, const Tensor& mask, bool keep_mean) {
  const Tensor weights = mask.to(values.scalar_type());
  const double count = weights.sum().item<double>();
  const Tensor mean = (values * weights).sum() / std::max(count, 1.0);
  Tensor variance = ((values - mean).square() * weights).sum() / std::max(count, 1.0);
  if (count > 1) variance = variance * (count / (count - 1));
  const Tensor out = (values - mean) * (variance + 1e-8).rsqrt();
  return keep_mean ? out + mean : out;
}

PpoTargets ppo_targets(const PpoGeneration& generation, const PpoKeys& keys) {
  const int64_t width = generation.logps.size(1);
  const Tensor places = at::arange(width, at::kLong).unsqueeze(0), lengths = generation.lengths.unsqueeze(1);
  PpoTargets out;
  out.padding = places.ge(lengths);
  out.value_padding = places.gt(lengths);
  out.values = generation.values.masked_fill(out.value_padding, 0);
  const Tensor ratio = (generation.reference - generation.logps).masked_fill(out.padding, 0);
  out.divergence = keys.kl_estimator == KlEstimator::k1 ? -ratio : ratio.exp() - 1 - ratio;
  const Tensor end = at::where(generation.lengths.lt(width), generation.lengths, generation.lengths - 1);
  out.raw_rewards = (-keys.kl_coef * out.divergence).scatter_add(1, end.unsqueeze(1), generation.scores.unsqueeze(1));
  out.rewards = out.raw_rewards;
  if (keys.whiten_rewards)
    out.rewards = whitened(out.rewards, out.value_padding.logical_not(), true).masked_fill(out.value_padding, 0);

  std::vector<Tensor> backwards;
  Tensor advantage = at::zeros_like(generation.scores);
  for (int64_t t = width; t-- > 0;) {
    Tensor delta = out.rewards.select(1, t) - out.values.select(1, t);
    if (t + 1 < width) delta = delta + keys.gamma * out.values.select(1, t + 1);
    advantage = delta + keys.gamma * keys.lam * advantage;
    backwards.push_back(advantage);
  }
  std::ranges::reverse(backwards);
  out.raw_advantages = at::stack(backwards, 1);
  out.returns = out.raw_advantages + out.values;
  out.advantages = out.raw_advantages;
  if (keys.whiten_advantages) out.advantages = whitened(out.advantages, out.padding.logical_not(), false);
  out.advantages = out.advantages.masked_fill(out.padding, 0);
  return out;
}

PpoLosses ppo_losses(const PpoTokens& tokens, const PpoValues& values, const PpoKeys& keys) {
  PpoLosses out;
  const Tensor ratio = (tokens.logps - tokens.old_logps).exp();
  const Tensor plain = -tokens.advantages * ratio,
               clipped = -tokens.advantages * ratio.clamp(1 - keys.cliprange, 1 + keys.cliprange);
  out.policy = at::maximum(plain, clipped);
  out.policy_clipped = clipped.gt(plain).to(at::kFloat);
  const Tensor near = at::maximum(at::minimum(values.values, values.old_values + keys.cliprange_value),
                                  values.old_values - keys.cliprange_value);
  const Tensor square = (values.values - values.returns).square(), near_square = (near - values.returns).square();
  out.value = 0.5 * at::maximum(square, near_square);
  out.value_clipped = near_square.gt(square).to(at::kFloat);
  return out;
}

}  // namespace easydel::train
