// What proximal policy optimisation learns from a generation, and its losses, as TRL 0.24's ppo_trainer.py has them.
#pragma once

#include "easydel/tensor/torch.h"
#include "easydel/train/ppo_config.h"

namespace easydel::train {

// Columns of recorded completions, one number each: the reward of the completion, and 1 if it ended.
inline constexpr const char *ppo_reward_column = "completion_reward", *ppo_ended_column = "completion_ended";

// A generation, [completions, width], padded on the right; fp32.
struct PpoGeneration {
  Tensor logps, reference;  // of each token; any numbers where there is padding
  Tensor values;            // before each token, and one after the last token where there is room for it
  Tensor scores;            // [completions]
  Tensor lengths;           // int64 [completions]: tokens of each
};

// [completions, width]; 0 where there is padding.
struct PpoTargets {
  Tensor padding, value_padding;  // bool: where there is no token; where there is no value
  Tensor divergence;              // from the reference, by the estimator
  Tensor raw_rewards, rewards;    // before and after they are whitened
  Tensor raw_advantages, advantages;
  Tensor returns;
  Tensor values;  // those of the generation, 0 where there are none
};
// A completion's score counts one place after its last token, if there is room.
PpoTargets ppo_targets(const PpoGeneration& generation, const PpoKeys& keys);

// Less their mean (unless it stays), divided by the unbiased standard deviation; over the places of the mask.
Tensor whitened(const Tensor& values, const Tensor& mask, bool keep_mean);

// Of tokens and of values, in flat lists of equal order.
struct PpoTokens {
  Tensor logps, old_logps, advantages;
};
struct PpoValues {
  Tensor values, old_values, returns;
};
struct PpoLosses {
  Tensor policy, policy_clipped;  // of each token; 1 where the clipped ratio counts
  Tensor value, value_clipped;    // of each value: half of the larger square
};
PpoLosses ppo_losses(const PpoTokens& tokens, const PpoValues& values, const PpoKeys& keys);

}  // namespace easydel::train
