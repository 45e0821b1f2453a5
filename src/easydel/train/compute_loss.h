// The loss of a model on a padded batch, for training loops of one's own (EasyDeL's compute_loss). Logits never exist
// at once: labels are scored from the last hidden states, over chunks of tokens.
#pragma once

#include "easydel/models/model.h"
#include "easydel/train/losses.h"
#include "easydel/train/method.h"

namespace easydel::train {

struct LossInputs {
  Tensor tokens;               // int64 [batch, length]
  Tensor attention_mask = {};  // [batch, length], 0 where a token is padding, on either side; undefined: nowhere
  Tensor labels = {};          // int64 [batch, length]; undefined: the tokens
  std::optional<double> num_items_in_batch = {};
};

struct ComputedLoss {
  models::Outputs outputs;  // of the tokens that are no padding, row after row
  LossMetrics metrics;
};

// As causal_lm_loss on the model's logits, but that a label whose token stands behind padding has no loss: padding is
// never computed. Losses of routers are not in it.
ComputedLoss compute_loss(const models::Model& model, const LossInputs& inputs, const LossConfig& config = {},
                          const Forwarding& forwarding = {});

}  // namespace easydel::train
