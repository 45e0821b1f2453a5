// The losses of transformers' classification heads, for `probe logits` (transformers, loss/loss_utils.py). Training has
// its own.
#pragma once

#include <string>

#include "easydel/tensor/torch.h"

namespace easydel::models {

// Mean of -log p(label) over labels other than `ignored`. logits [n, classes], labels int64 [n].
Tensor class_loss(const Tensor& logits, const Tensor& labels, int64_t ignored = -100);

// logits [rows, classes]. `problem`: regression (mean squares; labels as the logits), single_label_classification
// (int64 [rows]), multi_label_classification (0 or 1 for each class, as the logits); empty: regression of one class,
// else by whether the labels are integers. UserError for another word, and for labels of another shape.
Tensor sequence_loss(const Tensor& logits, const Tensor& labels, const std::string& problem);

// logits [rows, tokens, 2], first and last token of each row's answer, int64 [rows]; one outside the row does not
// count.
Tensor answer_loss(const Tensor& logits, const Tensor& first, const Tensor& last);

}  // namespace easydel::models
