// What a method compares the trained model with: another model, the same model with its adapters off, or
// log-probabilities that were computed before the first step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "easydel/train/method.h"
#include "easydel/train/sequence_logps.h"

namespace easydel::train {

// Column of the sequences: their log-probabilities under the reference, if they are precomputed.
inline constexpr const char* reference_logps = "reference_logps";

class Reference {
 public:
  // How it moves towards the trained model (arXiv:2404.09656): every `steps` updates it becomes
  // weight * model + (1 - weight) * reference.
  struct Following {
    double weight = 0.6;
    int64_t steps = 512;
  };
  Reference() = default;  // there is none
  // The model of the section reference_model. If it is not given, the weights that the trained model starts with: the
  // same model without its adapters, or a frozen copy. None while rows are only prepared. UserError if it has to follow
  // a model with adapters, or has another vocabulary.
  explicit Reference(const Setting& setting, std::optional<Following> following = {});

  bool exists() const { return model_ != nullptr; }
  // Without gradients, dropout, checkpointing or router losses.
  SequenceScores score(const Batch& batch, Forwarding how, nn::ScoreOptions options = {}) const;

  // Continues prompts as the reference does.
  Sampler sampler(std::shared_ptr<const text::Tokenizer> tokenizer) const;

  // Numbers that a method takes from the reference once: fp32 [sequences] of a batch.
  struct Column {
    std::string name;
    std::string kind;  // settings that the numbers depend on
    std::function<Batch(std::span<const data::Example* const>)> collate;
    std::function<Tensor(const Batch&, const Forwarding&)> compute;
  };
  // Gives all examples the column, each sequence a number, and frees the reference. Numbers that were kept beside the
  // checkpoints by a run with the same reference, examples, settings and order of additions are read instead.
  // Collective.
  void precompute(const Examination& of, const Column& column);

  // After update `step`.
  void follow(const models::Model& model, int64_t step) const;
  // Its part of Method::state() and restore(): only that of a reference that follows.
  void add_state(MethodState& state) const;
  void restore(const SavedState& saved) const;

 private:
  std::shared_ptr<models::Model> model_;
  bool without_adapters_ = false;  // `model_` is the trained model
  std::optional<Following> following_;
};

}  // namespace easydel::train
