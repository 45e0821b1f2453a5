// What the methods that learn from groups of sampled completions share (grpo, gspo, gfpo, rlvr, rloo): the log-
// probabilities of the completions, and their advantages.
#pragma once

#include <memory>

#include "easydel/train/grpo_config.h"
#include "easydel/train/policy_loss.h"
#include "easydel/train/sampling_method.h"

namespace easydel::train {

// Columns of the examples. Per token, at the place of its label:
inline constexpr const char *old_logps_column = "old_logps", *reference_logps_column = "reference_logps";
// Per sequence; completion_logps is the sum of the old log-probabilities of its learned tokens:
inline constexpr const char *advantages_column = "advantages", *mean_items_column = "mean_items",
                            *completion_logps_column = "completion_logps";
// Per sequence, of recorded completions: learned tokens of the whole generation, which become mean_items.
inline constexpr const char* generation_items_column = "generation_items";

class GroupPolicy : public SamplingMethod {
 public:
  struct Keys {
    double beta = 0;  // 0: there is no reference
    RolloutKeys rollouts;
    WindowKeys window;
    ReferenceKeys reference;
    Importance importance = Importance::full;
  };
  GroupPolicy(const Setting& setting, const Keys& keys);

  data::Prepared prepare(const data::TypedRow& row) const override;
  void updated(const models::Model& model, int64_t step) override;

 protected:
  // Whether nothing but the rewards of the rollouts' keys decides what a completion is worth.
  virtual bool only_rewards_count() const { return true; }
  // Called for examples of recorded completions that have the reference's log-probabilities.
  virtual void score_recorded(std::vector<data::Example>& /*examples*/) const {}
  // The advantages of a generation's completions, whose examples have old and reference log-probabilities.
  virtual Advantages advantages(const RewardTable& rewards, const std::vector<data::Example>& examples) const = 0;
  // The places of the completions that are learned, in their order, as many of each group; empty: all.
  virtual std::vector<size_t> kept(const RewardTable& /*rewards*/,
                                   const std::vector<data::Example>& /*examples*/) const {
    return {};
  }
  // Adds to an example what else the loss reads; `place`: of its completion in the rollouts.
  virtual void add_context(data::Example& /*example*/, const Rollouts& /*rollouts*/, size_t /*place*/) const {}
  // How far the sampler's log-probabilities are from those of the trained model, while they are of the same weights.
  void add_sampling_difference(std::vector<Metric>& metrics, const Tensor& logps, const Batch& batch,
                               const Forwarding& how) const;

 private:
  Window sampled(const Generation& generation) override;
  void complete(Window& window, const RolloutPlan& plan) override;
  void add_reference(std::vector<data::Example>& examples) const;
  void check_groups(int64_t steps_per_generation) const;

  bool on_policy_ = false;
};

// The method grpo with the keys of another one that is a special case of it.
std::unique_ptr<Method> build_grpo(const Setting& setting, const GrpoKeys& own, GroupPolicy::Keys keys);

}  // namespace easydel::train
