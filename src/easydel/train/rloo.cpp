// trainer_type: rloo. REINFORCE with leave-one-out baselines (arXiv:2402.14740) and the clipped ratio of whole
// completions of trl/trainer/rloo_trainer.py.
#include "easydel/train/rloo_config.h"

#include <ATen/ops/minimum.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "easydel/train/group_policy.h"

namespace easydel::train {
namespace {

class Rloo final : public GroupPolicy {
 public:
  Rloo(const Setting& setting, const RlooConfig& config)
      : GroupPolicy(setting,
                    {config.own.beta, config.rollouts, config.window, config.reference, config.own.importance}),
        own_(config.own) {}

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& how) const override {
    const SequenceScores found = score_sequences(model, batch, how, scoring(true));
    const auto device = found.logps.device();
    const Tensor old = batch.column(completion_logps_column).to(device);
    const Tensor advantages = batch.column(advantages_column).to(device);
    const double lowest = 1 - own_.epsilon, highest = 1 + own_.epsilon_high.value_or(own_.epsilon);
    const Tensor ratio = (found.sums(found.logps) - old).exp();
    Loss out;
    out.sum = -at::minimum(ratio * advantages, ratio.clamp(lowest, highest) * advantages).sum();
    if (!how.metrics) return out;
    add_generation_metrics(out.metrics, how);

    const auto mean = [&](const char* name, const Tensor& values) {
      out.metrics.push_back({name, values.detach().sum().item<double>(), double(values.size(0))});
    };
    mean("entropy", found.details.entropy);
    const Tensor low = ratio.lt(lowest).logical_and(advantages.lt(0));
    const Tensor high = ratio.gt(highest).logical_and(advantages.gt(0));
    const Tensor below = low.to(at::kFloat), above = high.to(at::kFloat);
    mean("clip_ratio/low_mean", below);
    mean("clip_ratio/high_mean", above);
    mean("clip_ratio/region_mean", low.logical_or(high).to(at::kFloat));
    out.metrics.push_back({"clip_ratio/low_min", how.gather(below).min().item<double>(), 1});
    out.metrics.push_back({"clip_ratio/high_max", how.gather(above).max().item<double>(), 1});
    return out;
  }

 protected:
  Advantages advantages(const RewardTable& rewards, const std::vector<data::Example>& examples) const override {
    LeaveOneOut options{own_.reward_clip_range.value_or(std::vector<double>()), own_.normalize_advantages};
    if (examples.empty() || !examples[0].find(reference_logps_column)) return leave_one_out(rewards, options);
    std::vector<float> distances;
    double sum = 0, tokens = 0;
    for (const data::Example& example : examples) {
      const auto numbers = [&](const char* column) {
        return std::get<std::vector<float>>(example.find(column)->values);
      };
      const std::vector<float> old = numbers(old_logps_column), reference = numbers(reference_logps_column);
      double distance = 0;
      for (size_t i = 0; i < old.size(); ++i)
        if (example.labels[i] != data::no_label) distance += double(old[i]) - double(reference[i]);
      distances.push_back(float(distance));
      sum += distance, tokens += double(example.labelled());
    }
    options.penalty = own_.beta * at::tensor(at::ArrayRef<float>(distances), at::kFloat);
    Advantages out = leave_one_out(rewards, options);
    out.metrics.push_back({"kl", sum / std::max(tokens, 1.0), 1});
    return out;
  }

  void score_recorded(std::vector<data::Example>& examples) const override {
    const SequenceScores found = scores_now(examples);
    const Tensor sums = found.sums(found.logps).to(at::kCPU).contiguous();
    for (size_t i = 0; i < examples.size(); ++i)
      examples[i].set(
          {completion_logps_column, data::Column::Per::sequence, std::vector<float>{sums.const_data_ptr<float>()[i]}});
  }

 private:
  RlooKeys own_;
};

}  // namespace

MethodEntry rloo() {
  return {"rloo", [](const Setting& setting) -> std::unique_ptr<Method> {
            return std::make_unique<Rloo>(setting, setting.trainer.own_as<RlooConfig>());
          }};
}

}  // namespace easydel::train
