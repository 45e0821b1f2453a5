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
  Tensor z_loss;      // the part of the loss from the squared log-normalizer
  Tensor weight_sum;  // number of tokens that are trained on
  Tensor accuracy;    // fraction of labels that have the largest logit
};

struct Targets {
  Tensor labels;  // int64 [batch, length]
  Tensor attention_mask =
      {};  // [batch, length], 0 where a token is padding; undefined: where the label is ignore_index
  std::optional<double> num_items_in_batch = {};  // the loss is divided by it, last
  // For labels after the shift: weights that replace the mask, and the document of a packed row that a label belongs
  // to.
  Tensor weights = {}, segments = {};
};

// A label equal to ignore_index has no loss, no z-loss and no gradient, and does not count in any metric. It does count
// in the divisor if the mask says that its token is real (EasyDeL's contract; trainers divide by labels).
//   NUM_REAL_TARGET_TOKENS            the sum of the mask
//   NO_WEIGHT_NUM_REAL_TARGET_TOKENS  (or 0) the labels that are neither ignored nor masked
//   NUM_TOTAL_TARGET_TOKENS           all labels, including padding
//   AVERAGE_PER_SEQUENCE              the mean of the means of the rows (or segments)
//   a number, or null for 1           used as it is, without the mask
// reduction: mean, sum or none replaces all of that, without z-loss. Label smoothing is ops::Smoothing::t5x; chunk
// sizes do not change values. A loss whose divisor is 0 is NaN. Throws UserError for values and shapes that do not fit.
LossMetrics causal_lm_loss(const Tensor& logits, const Targets& targets, const LossConfig& config = {});
LossMetrics token_classification_loss(const Tensor& logits, const Targets& targets, const LossConfig& config = {});

// logits [batch, classes]; labels [batch] of integers (one class each), of numbers (regression; [batch] or the shape of
// the logits), or [batch, classes] of 0 and 1 (several classes each). The kind is problem_type, otherwise regression if
// num_labels is 1, otherwise it follows from the labels' dtype. Only `loss` is defined except for single labels.
LossMetrics sequence_classification_loss(const Tensor& logits, const Tensor& labels, const LossConfig& config = {});

// Begin and end of an answer: logits [batch, length], positions int64 [batch]. A position after the text is ignored.
// The means of the two losses.
LossMetrics question_answering_loss(const Tensor& start_logits, const Tensor& end_logits, const Tensor& start_positions,
                                    const Tensor& end_positions, const LossConfig& config = {});

}  // namespace easydel::train
