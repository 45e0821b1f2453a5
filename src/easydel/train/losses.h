// The losses of a task on logits that exist, as EasyDeL has them (easydel/infra/loss_utils.py): causal language models,
// classification of sequences and tokens, answers within a text. Tensors are [batch, length], padded. Trainers do not
// come here: they work on flat tokens and never hold all logits.
#pragma once

#include <optional>

#include "easydel/tensor/torch.h"
#include "easydel/train/loss_config.h"

namespace easydel::train {

// Scalars, fp32, `loss` with a gradient. With reduction: none, loss, weight_sum and accuracy are of each token.
struct LossMetrics {
  Tensor loss;
  Tensor z_loss;      // the part of the loss that is the squared log-normalizer's
  Tensor weight_sum;  // of the tokens that are learned
  Tensor accuracy;    // share of them whose label is the likeliest
};

struct Targets {
  Tensor labels;  // int64 [batch, length]
  Tensor attention_mask =
      {};  // [batch, length], 0 where a token is padding; undefined: where the label is ignore_index
  std::optional<double> num_items_in_batch = {};  // the loss is divided by it, last
  // Of the labels that are left after the shift: instead of the mask, and which document of a packed row a label is of.
  Tensor weights = {}, segments = {};
};

// A label equal to ignore_index is not learned: it has no loss, no z-loss and no gradient, and counts in no metric. The
// divisor does count it where the mask says that its token is real (contract of EasyDeL; trainers divide by labels).
//   NUM_REAL_TARGET_TOKENS            the sum of the mask
//   NO_WEIGHT_NUM_REAL_TARGET_TOKENS  (or 0) the learned labels that the mask shows
//   NUM_TOTAL_TARGET_TOKENS           all labels, padding too
//   AVERAGE_PER_SEQUENCE              each row (or segment) has a mean, and these have one
//   a number, or null for 1           as it is, and the mask does not count
// reduction: mean, sum or none takes the place of all that, without z-loss. Label smoothing is ops::Smoothing::t5x;
// chunk sizes change no value. A loss without anything to divide by is NaN. UserError for values and shapes that do not
// fit.
LossMetrics causal_lm_loss(const Tensor& logits, const Targets& targets, const LossConfig& config = {});
LossMetrics token_classification_loss(const Tensor& logits, const Targets& targets, const LossConfig& config = {});

// logits [batch, classes], labels [batch] of whole numbers (one class each), of numbers (regression; [batch] or as
// logits), or [batch, classes] of 0 and 1 (several classes each). The kind is problem_type, else regression where
// num_labels is 1, else by the labels' type. Only `loss` is there but for single labels.
LossMetrics sequence_classification_loss(const Tensor& logits, const Tensor& labels, const LossConfig& config = {});

// Where an answer begins and ends: logits [batch, length], positions int64 [batch]. A position past the text is not
// learned. Means of the two.
LossMetrics question_answering_loss(const Tensor& start_logits, const Tensor& end_logits, const Tensor& start_positions,
                                    const Tensor& end_positions, const LossConfig& config = {});

}  // namespace easydel::train
