// Advantages of sampled completions from their rewards, in groups of completions of one prompt, as
// trl/trainer/grpo_trainer.py and rloo_trainer.py have them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "easydel/train/grpo_config.h"
#include "easydel/train/method.h"

namespace easydel::train {

// The rewards of a generation's completions. A group's completions follow each other.
struct RewardTable {
  std::vector<std::string> names;
  std::vector<double> weights;  // of each name
  Tensor values;                // fp32 [completions, names]; NaN: this reward does not count for this completion
  int64_t group = 1;            // completions of one prompt
  std::vector<const Value*> rows = {};          // of each completion: every field of its prompt's row; empty: not known
  std::vector<std::vector<double>> turns = {};  // of each episode: the rewards of its turns; empty: not episodes
  std::optional<double> clip = {};              // bound of a completion's weighted sum; nothing: none
};

struct Advantages {
  Tensor values;                // fp32 [completions]; 0 for a completion that no reward counts for
  std::vector<Metric> metrics;  // rewards/<name>/mean and std, reward, reward_std, frac_reward_zero_std
};

struct CompletionLength {
  int64_t tokens = 0;
  bool ended = false;  // by an end token, and not by the limit
};
// completions/mean_length and the like, as TRL logs them of a generation.
std::vector<Metric> length_metrics(const std::vector<CompletionLength>& lengths);

// The completions at these places, in groups of `group`.
RewardTable part_of(const RewardTable& table, const std::vector<size_t>& places, int64_t group);
// The sum of a completion's weighted rewards, fp32 [completions]; NaN if none counts.
Tensor weighted_rewards(const RewardTable& table);

// Rewards less their group's mean, divided by the standard deviation that `scale` names plus 1e-4.
Advantages group_advantages(const RewardTable& table, RewardScale scale, RewardAggregation aggregation);

struct LeaveOneOut {
  std::vector<double> clip_range = {};  // lowest and highest reward; empty: not clipped
  bool normalize = false;               // over all completions
  // fp32 [completions], subtracted from the rewards after they are clipped; undefined: nothing.
  Tensor penalty = {};
};
// Rewards less the mean of the others of the group (arXiv:2402.14740).
Advantages leave_one_out(const RewardTable& table, const LeaveOneOut& options);

}  // namespace easydel::train
