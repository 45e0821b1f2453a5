// A training method: how rows become examples, what a micro-batch is made of and what is minimised. The loop, the
// optimizer and checkpoints belong to Trainer; a method touches none of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/data/dataset.h"
#include "easydel/data/mixture_config.h"
#include "easydel/models/model.h"
#include "easydel/nn/pass.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/train/method_configs.h"

namespace easydel::train {

// A micro-batch: one flat list of tokens.
struct Batch {
  Tensor tokens;                    // int64 [tokens]
  Tensor labels;                    // int64 [tokens], shifted; data::no_label: not learned
  std::vector<int64_t> cu_seqlens;  // where each sequence begins, and the end
  int64_t examples = 0;
  int64_t labelled = 0;       // labels that are not no_label
  std::vector<float> values;  // the examples' values, one after the other
  // The method's share in what the step's losses are divided by: added over micro-batches and ranks.
  double weight = 0;
  int64_t size() const { return cu_seqlens.back(); }
};

struct Metric {
  std::string name;
  double sum = 0, count = 0;  // added over ranks, then divided, then averaged over micro-batches
};

struct Loss {
  Tensor sum;  // scalar fp32, differentiable; the trainer divides it by the step's weight
  std::vector<Metric> metrics;
};

class RouterWatch;

// How one forward is to be done; the trainer fills it in.
struct Forwarding {
  nn::CheckpointPolicy checkpointing;
  std::string attention = "auto";
  bool training = true;
  uint64_t seed = 0, step = 0;
  int64_t first_token = 0;  // of this micro-batch in the step
  bool metrics = true;      // whether the step is reported: else what only metrics need can be left out

  RouterWatch* routers = nullptr;  // sees what routers gave; null: nobody asks

  // The model over the batch. Sets `pass` to the pass that was made, which heads are given too. What the model's
  // routers add to a loss is the trainer's business.
  models::Outputs run(const models::Model& model, const Batch& batch, nn::Pass& pass) const;
};

class Method {
 public:
  virtual ~Method() = default;
  // Called from several threads at once.
  virtual data::Prepared prepare(const data::TypedRow& row) const = 0;
  virtual bool can_pack() const { return false; }
  virtual Batch collate(std::span<const data::Example* const> examples) const = 0;
  virtual Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const = 0;
  // What a step's sum of losses is divided by, given the weights of all its batches.
  virtual double divisor(double weight) const { return weight; }
  // Once before the first step, with every example that will be used (precomputed log-probabilities).
  virtual void examine(std::span<data::Example>, const Forwarding&) {}
  // After `step` updates were made.
  virtual void updated(const models::Model&, int64_t /*step*/) {}
  // What of the method's own state a checkpoint must hold beside the model (a reference that moves); may be null.
  virtual std::shared_ptr<models::Model> state() const { return nullptr; }
};

// What a method is built from.
struct Setting {
  const TrainerSection& trainer;
  const data::MixtureConfig& mixture;
  std::shared_ptr<const text::Tokenizer> tokenizer;  // null: examples come ready (a replay)
  std::shared_ptr<models::Model> model;              // null: rows are prepared, and nothing is computed
  std::shared_ptr<models::Model> reference;          // the user's; null: none was given
};

struct MethodEntry {
  std::string_view name;
  std::unique_ptr<Method> (*build)(const Setting& setting);
};

std::span<const MethodEntry> methods();  // in alphabetical order: methods.cpp
std::unique_ptr<Method> build_method(const Setting& setting);

// The examples' sequences one after the other: first the first sequence of every example, then every second one
// (a pair's chosen halves stand before the rejected ones).
Batch flat_batch(std::span<const data::Example* const> examples);
// Takes the labelled rows of hidden [tokens, size]: (rows, labels).
std::pair<Tensor, Tensor> labelled_rows(const Tensor& hidden, const Batch& batch);

}  // namespace easydel::train
