// Optimizers that average more than one gradient or iterate: AdEMAMix and schedule-free AdamW, in their authors' order
// of operations.
#include <ATen/ops/lerp.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "easydel/train/update_rules.h"

namespace easydel::train {
namespace {

class Ademamix final : public UpdateRule {
 public:
  explicit Ademamix(const AdemamixOptions& options) : o_(options) {}
  OptimizerStates start(const Tensor& value) const override {
    return {{"mean", at::zeros_like(value)}, {"slow", at::zeros_like(value)}, {"square", at::zeros_like(value)}};
  }
  void update(const Update& u) const override {
    const double step = double(u.step);
    double alpha = o_.alpha, b3 = o_.b3;
    if (o_.alpha_steps > 0) alpha = std::min(step * alpha / double(o_.alpha_steps), alpha);
    if (o_.b3_steps > 0) {
      const double log1 = std::log(o_.b1), log3 = std::log(o_.b3), scale = step / double(o_.b3_steps);
      b3 = std::min(std::exp(log1 * log3 / ((1 - scale) * log3 + scale * log1)), o_.b3);
    }
    Tensor &mean = u.state("mean"), &slow = u.state("slow"), &square = u.state("square");
    mean.mul_(o_.b1).add_(u.gradient, 1 - o_.b1);
    slow.mul_(b3).add_(u.gradient, 1 - b3);
    square.mul_(o_.b2).addcmul_(u.gradient, u.gradient, 1 - o_.b2);
    const Tensor root = square.sqrt().div_(std::sqrt(1 - std::pow(o_.b2, step))).add_(o_.eps);
    Tensor change = mean.div(1 - std::pow(o_.b1, step)).add_(slow, alpha).div_(root);
    change.add_(u.value, u.decay);
    u.value.add_(change, -u.rate);
  }

 private:
  AdemamixOptions o_;
};

class ScheduleFreeAdamW final : public UpdateRule {
 public:
  explicit ScheduleFreeAdamW(const ScheduleFreeOptions& options) : o_(options) {}
  OptimizerStates start(const Tensor& value) const override {
    const Tensor zero = at::zeros({}, value.options().dtype(at::kDouble));
    return {{"z", value.clone()}, {"square", at::zeros_like(value)}, {"weight_sum", zero}, {"rate", zero.clone()}};
  }
  void update(const Update& u) const override {
    const double step = double(u.step);
    Tensor &sum = u.state("weight_sum"), &highest = u.state("rate");
    const double rate_max = std::max(u.rate, highest.item<double>());
    const double weight = std::pow(step, o_.r) * std::pow(rate_max, o_.weight_rate_power);
    const double total = sum.item<double>() + weight, share = total > 0 ? weight / total : 0;
    sum.fill_(total), highest.fill_(rate_max);
    Tensor &z = u.state("z"), &square = u.state("square");
    square.mul_(o_.b2).addcmul_(u.gradient, u.gradient, 1 - o_.b2);
    const Tensor root = square.div(1 - std::pow(o_.b2, step)).sqrt_().add_(o_.eps);
    Tensor change = u.gradient.div(root);
    if (u.decay != 0) change.add_(u.value, u.decay);
    u.value.lerp_(z, share).add_(change, u.rate * (o_.b1 * (1 - share) - 1));
    z.sub_(change, u.rate);
  }
  Tensor averaged(const Tensor& value, const OptimizerStates& states) const override {
    return value.lerp(states.at("z"), 1 - 1 / o_.b1);
  }

 private:
  ScheduleFreeOptions o_;
};

}  // namespace

std::unique_ptr<UpdateRule> ademamix(const AdemamixOptions& options) { return std::make_unique<Ademamix>(options); }
std::unique_ptr<UpdateRule> schedule_free_adamw(const ScheduleFreeOptions& options) {
  return std::make_unique<ScheduleFreeAdamW>(options);
}

}  // namespace easydel::train
