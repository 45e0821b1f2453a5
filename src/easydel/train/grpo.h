// The method grpo, for those that are grpo on other completions or with other rewards (gspo, gfpo, rlvr).
#pragma once

#include <algorithm>
#include <memory>

#include "easydel/train/group_policy.h"

namespace easydel::train {

class Grpo : public GroupPolicy {
 public:
  Grpo(const Setting& setting, const GrpoKeys& own, const Keys& keys)
      : GroupPolicy(setting, keys), own_(own), entropy_coef_(own.entropy_coef) {}

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& how) const override;
  void updated(const models::Model& model, int64_t step) override;
  MethodState state() const override;
  void restore(const SavedState& saved) override;

 protected:
  Advantages advantages(const RewardTable& rewards, const std::vector<data::Example>& examples) const override;
  const GrpoKeys& own() const { return own_; }

 private:
  double window_entropy() const { return window_entropy_ / std::max(window_tokens_, 1.0); }
  // The coefficient after the micro-batches of the step so far.
  double adapted() const;

  GrpoKeys own_;
  double entropy_coef_, last_entropy_ = 0;  // of this step; of the step before
  // Of the micro-batches of this step: sum over tokens, and their number. All ranks have the same.
  mutable double window_entropy_ = 0, window_tokens_ = 0;
};

}  // namespace easydel::train
