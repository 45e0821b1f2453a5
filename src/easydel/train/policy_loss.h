// The losses of group relative policy optimisation and its relatives on the sampled tokens of a micro-batch, as
// trl/trainer/grpo_trainer.py and trl/experimental/gmpo have them. Tokens are a flat list; nothing is padded.
#pragma once

#include <vector>

#include "easydel/train/grpo_config.h"
#include "easydel/train/method.h"

namespace easydel::train {

// What the loss reads; T learned tokens of N completions. Everything but `logps` and `entropy` is without a gradient.
struct PolicyTokens {
  Tensor logps;       // fp32 [T], of the trained model, differentiable
  Tensor entropy;     // fp32 [T], of the trained model; differentiable if there is an entropy bonus
  Tensor old_logps;   // fp32 [T], when the completions were sampled; undefined: equal to logps
  Tensor reference;   // fp32 [T], of the reference; undefined: there is none
  Tensor completion;  // int64 [T]: which completion a token belongs to
  Tensor lengths;     // fp32 [N]: learned tokens of each completion
  Tensor advantages;  // fp32 [N]
  Tensor mean_items;  // fp32 [N]: learned tokens per completion in the generation that the completion belongs to
};

struct PolicyLossOptions {
  const GrpoKeys& keys;
  int64_t max_completion_length = 0;
  double entropy_coef = 0;  // of this step; used where entropy_bonus is set
  bool entropy_bonus = false;
  int64_t accumulation = 1;  // micro-batches of a step, for the metric policy_loss
};

struct PolicyLoss {
  // The sum over this rank's completions whose quotient by the completions of the step is the loss; scalar fp32.
  Tensor sum;
  std::vector<Metric> metrics;
  double entropy = 0, entropy_tokens = 0;  // sum over the tokens that the bonus acts on, all ranks, and their number
};

PolicyLoss policy_loss(const PolicyTokens& tokens, const PolicyLossOptions& options, const Forwarding& forwarding);

}  // namespace easydel::train
