// The loss of a model on a padded batch, for custom training loops (EasyDeL's compute_loss). The logits are never
// materialized: labels are scored from the last hidden states, in chunks of tokens.
#pragma once

#include "easydel/models/model.h"
#include "easydel/train/losses.h"
#include "easydel/train/method.h"

namespace easydel::train {

struct LossInputs {
  Tensor tokens;               // int64 [batch, length]
  Tensor attention_mask = {};  // [batch, length], 0 for padding tokens on either side; undefined: no padding
  Tensor labels = {};          // int64 [batch, length]; undefined: the tokens
  std::optional<double> num_items_in_batch = {};
};

struct ComputedLoss {
  models::Outputs outputs;  // of the tokens without padding, row after row
  LossMetrics metrics;
};

// Like causal_lm_loss on the model's logits, except that a label whose token follows padding has no loss, because
// padding is never computed. Router losses are not included.
ComputedLoss compute_loss(const models::Model& model, const LossInputs& inputs, const LossConfig& config = {},
                          const Forwarding& forwarding = {});

}  // namespace easydel::train
