// The losses of methods that learn from a completion and its opponent, as trl/experimental/online_dpo and TRL 0.24's
// xpo_trainer.py and nash_md_trainer.py have them. Tensors are [pairs].
#pragma once

#include "easydel/tensor/torch.h"
#include "easydel/train/online_dpo_config.h"

namespace easydel::train {

// The log-probability of each pair's completion by the trained model, differentiable, and by the reference.
struct CompletionLogps {
  Tensor policy, reference;
  Tensor ratio() const { return policy - reference; }
};

// Of the first completions over the second ones, as pairs of dpo. `first_wins`: bool.
struct OnlineMargins {
  Tensor chosen, rejected;  // log-ratios
};
OnlineMargins online_margins(const CompletionLogps& first, const CompletionLogps& second, const Tensor& first_wins);
Tensor online_loss(OnlineLoss loss, double beta, const OnlineMargins& margins);

// Exploration (arXiv:2405.21046): the likelihood of what the reference said, to be lowered.
Tensor exploration_loss(double alpha, const CompletionLogps& of_reference);

// Nash learning (arXiv:2312.00886) by REINFORCE.
struct NashLoss {
  Tensor loss, score, divergence;  // the loss; its part that wins; the log-ratio without a gradient
};
// Of tokens of completions, [tokens]; `sequence`: which completion each belongs to. `wins`: the probability that the
// completion is better than its opponent.
NashLoss nash_loss(double beta, const CompletionLogps& tokens, const Tensor& sequence, const Tensor& wins);

}  // namespace easydel::train
