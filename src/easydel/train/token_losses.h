// What the losses on logits and the loss of a model share: the reduction of token losses to one number.
#pragma once

#include "easydel/train/losses.h"

namespace easydel::train {

// fp32, of the labels' shape: a label's loss without z, its z-loss, whether it is the likeliest. All 0 for a label
// outside of the vocabulary.
struct TokenLosses {
  Tensor plain, z, correct;
};

void check_loss_config(const LossConfig& config);  // UserError for numbers that no loss can have
// `targets` as they are after the shift; by the rules of train/losses.h.
LossMetrics reduced(const TokenLosses& tokens, const Targets& targets, const LossConfig& config);

}  // namespace easydel::train
