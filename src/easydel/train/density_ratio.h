// How likely the prompts of bad answers are among those of good ones, as weights of the bad answers: the matching of
// distributions of BCO (arXiv:2404.04656) as TRL 0.24's bco_trainer.py has it.
#pragma once

#include <cstdint>
#include <string>

#include "easydel/tensor/torch.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/train/method.h"

namespace easydel::train {

// The minimum of the loss of scikit-learn's LogisticRegression(class_weight="balanced"): both classes weigh the same,
// half the squared length of the coefficients is added, and the intercept is free.
struct LogisticClassifier {
  Tensor coefficients;  // fp64 [size]
  double intercept = 0;

  // x: fp64 [examples, size]; positive: bool [examples], of which some are true and some are not.
  static LogisticClassifier fit(const Tensor& x, const Tensor& positive);
  Tensor probability(const Tensor& x) const;  // of being positive, fp64 [examples]
};

struct DensityRatio {
  std::string model;  // a folder or hub name, whose embeddings of prompts are compared
  int64_t samples = 1024;
  double min = 0.5, max = 10;
  uint64_t seed = 0;  // of the prompts that are drawn if there are more
};

inline constexpr const char* density_ratio_column = "density_ratio";

// Adds the column to every example of the sets: p / (1 - p) within the bounds for a bad answer (column answer_is_good),
// 1 for a good one. The classifier learns from the first set. A prompt is embedded as the text of its tokens.
// UserError if the model cannot be loaded or embeds nothing, or if all answers are good or all are bad. The same on all
// ranks.
void add_density_ratios(const DensityRatio& options, const Examination& of, const text::Tokenizer& tokenizer);

}  // namespace easydel::train
