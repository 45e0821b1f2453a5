#include "easydel/models/head_loss.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>

#include "easydel/base/error.h"

namespace easydel::models {

Tensor class_loss(const Tensor& logits, const Tensor& labels, int64_t ignored) {
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Mean, ignored);
}

Tensor sequence_loss(const Tensor& logits, const Tensor& labels, const std::string& problem) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  const bool whole_numbers = at::isIntegralType(labels.scalar_type(), /*includeBool=*/false);
  const std::string kind = !problem.empty() ? problem
                           : classes == 1   ? "regression"
                           : whole_numbers  ? "single_label_classification"
                                            : "multi_label_classification";
  const auto expect = [&](int64_t count) {
    if (labels.numel() != count)
      refuse("labels", str("there are ", labels.numel(), "; ", kind, " of ", rows, " rows and ", classes,
                           " classes has ", count));
  };
  if (kind == "single_label_classification") {
    expect(rows);
    return class_loss(logits, labels.flatten().to(at::kLong));
  }
  expect(rows * classes);
  const Tensor targets = labels.to(at::kFloat).view({rows, classes});
  if (kind == "regression") return at::mse_loss(logits, targets);
  if (kind == "multi_label_classification") return at::binary_cross_entropy_with_logits(logits, targets);
  refuse("problem_type", str("'", kind, "' is not known"),
         "known: regression, single_label_classification, multi_label_classification");
}

Tensor answer_loss(const Tensor& logits, const Tensor& first, const Tensor& last) {
  const int64_t tokens = logits.size(1);
  const auto of = [&](int64_t end, const Tensor& place) {
    return class_loss(logits.select(2, end), place.flatten().to(at::kLong).clamp(0, tokens), tokens);
  };
  return (of(0, first) + of(1, last)) / 2;
}

}  // namespace easydel::models
