// What the distilling methods share: the losses of a student against a frozen teacher on the labelled tokens of a
// batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "easydel/train/distillation_config.h"
#include "easydel/train/method.h"

namespace easydel::train {

// A term of the loss that compares what the two models compute in some of their layers.
struct LayerTerm {
  double weight = 0;
  // Indices of layers, the same in both models; negative ones count from the last layer. Not given: all layers, of
  // which both models then have as many.
  std::optional<std::vector<int64_t>> layers = {};
};

// The loss of a labelled token: divergence_weight * D + label_weight * cross-entropy of its label + the layers' terms.
struct TeachingTerms {
  // D: ops/head_divergence.h.
  double beta = 0, temperature = 1;
  int64_t teacher_top_k = 0;  // 0: all of the teacher's distribution
  double divergence_weight = 1, label_weight = 0;
  // Mean squared difference of hidden states: over their elements, and over the layers.
  std::optional<LayerTerm> hidden_states = {};
  // The same of attention probabilities: over heads and the keys up to the query's own, and over the layers.
  std::optional<LayerTerm> attention = {};
  bool normalizes_attention = false;  // each query's probabilities are scaled to sum 1 (sinks take a part of them)
  bool disable_dropout = false;
  int64_t chunk = 0;  // tokens scored at a time; 0: chosen by size
};

// What the keys of DistillationConfig say.
TeachingTerms teaching_terms(const DistillationConfig& config, const TrainerConfig& common);

// flat_batch whose weight is its number of labels.
Batch labelled_batch(std::span<const data::Example* const> examples);

class Teaching {
 public:
  // UserError "teacher_model..." for models whose layers cannot be compared as `terms` ask. `teacher` may be null: then
  // nothing is computed.
  Teaching(std::shared_ptr<const models::Model> teacher, const models::Model* student, TeachingTerms terms);

  // Summed over the labelled tokens. The teacher computes nothing if no term needs it. Metrics: entropy (of the
  // student, at the temperature), and what the terms add.
  Loss loss(const models::Model& student, const Batch& batch, const Forwarding& forwarding) const;

  const std::shared_ptr<const models::Model>& teacher() const { return teacher_; }

 private:
  std::shared_ptr<const models::Model> teacher_;
  TeachingTerms terms_;
};

}  // namespace easydel::train
