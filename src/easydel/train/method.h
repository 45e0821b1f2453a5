// A training method: how rows become examples, what a micro-batch contains and which loss is minimised. The loop, the
// optimizer and checkpoints belong to Trainer; a method does not touch them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
#include "easydel/train/batch_source.h"
#include "easydel/train/method_configs.h"
#include "easydel/train/method_state.h"
#include "easydel/train/sampler.h"

namespace easydel::train {

// A micro-batch: one flat list of tokens.
struct Batch {
  Tensor tokens;                    // int64 [tokens]
  Tensor labels;                    // int64 [tokens], shifted; data::no_label: not learned
  std::vector<int64_t> cu_seqlens;  // where each sequence begins, and the end
  int64_t examples = 0;
  int64_t labelled = 0;  // labels that are not no_label
  // The examples' columns by name, fp32 or int64 [examples], [sequences] or [tokens], in the batch's order.
  std::map<std::string, Tensor, std::less<>> columns;
  // The batch's weight, summed over micro-batches and ranks; the step's losses are divided by that sum.
  double weight = 0;
  int64_t size() const { return cu_seqlens.back(); }
  bool has(std::string_view column) const { return columns.find(column) != columns.end(); }
  const Tensor& column(std::string_view name) const;  // Bug if there is none
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
  bool training = true;
  uint64_t seed = 0, step = 0;
  int64_t first_token = 0;  // of this micro-batch in the step
  bool metrics = true;      // whether the step is reported: else what only metrics need can be left out

  RouterWatch* routers = nullptr;  // records the routers' outputs; null: not requested
  // Gets every named tensor of the forward with its gradient (nn::Activations::capture), a layer's output under the
  // layer's path; and with `attention_weights` the probabilities [heads, queries, keys] of each sequence, under the
  // layer's path and ".attn_weights".
  std::function<void(std::string_view name, const Tensor&)> capture = {};
  bool attention_weights = false;
  double embedding_noise = 0;  // nn::Randomness

  // Runs the model on the batch. `pass` is set to the pass that was created; heads receive it, too. The trainer adds
  // router losses.
  models::Outputs run(const models::Model& model, const Batch& batch, nn::Pass& pass) const;
};

class Method {
 public:
  virtual ~Method() = default;
  // Called from several threads at once.
  virtual data::Prepared prepare(const data::TypedRow& row) const = 0;
  // The source of the steps' examples, given the source of the prepared rows. A method that generates its own examples
  // returns a source that takes prompts from `rows`. A step must remain a function of its index, the weights and the
  // method's state. `sampler`: null unless the method's facts say that it samples; it outlives the source.
  virtual std::unique_ptr<BatchSource> source(std::unique_ptr<BatchSource> rows, const Sampler* /*sampler*/) {
    return rows;
  }
  virtual Batch collate(std::span<const data::Example* const> examples) const = 0;
  virtual Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const = 0;
  // The divisor of a step's sum of losses, given the summed weights of its batches.
  virtual double divisor(double weight) const { return weight; }
  // Once before the first step, with every example that will be used (precomputed log-probabilities).
  virtual void examine(std::span<data::Example>, const Forwarding&) {}
  // Called after update `step`.
  virtual void updated(const models::Model&, int64_t /*step*/) {}
  // The method's own state for a checkpoint (a reference that moves, a running mean). Tensors are read while the
  // checkpoint is written, so they may be the method's own.
  virtual MethodState state() const { return {}; }
  // Restores what state() returned, before the first step. Called for every method when a run resumes from a
  // checkpoint.
  virtual void restore(const SavedState&) {}
};

// A model in addition to the one that is trained; frozen.
struct SideModel {
  std::shared_ptr<models::Model> model;              // null: none was given
  std::shared_ptr<const text::Tokenizer> tokenizer;  // its own; null: there is none in its folder
};

// By role; only those that the method's facts have a use for.
struct SideModels {
  SideModel reference, teacher, reward;
};

// The inputs of a method's constructor.
struct Setting {
  const TrainerSection& trainer;
  const data::MixtureConfig& mixture;
  std::shared_ptr<const text::Tokenizer> tokenizer;  // null: examples come ready (a replay)
  std::shared_ptr<models::Model> model;              // null: rows are prepared, and nothing is computed
  SideModels side = {};
};

struct MethodEntry {
  std::string_view name;
  std::unique_ptr<Method> (*build)(const Setting& setting);
};

std::span<const MethodEntry> methods();  // in alphabetical order: methods.cpp
// One more, from a plug-in; see register_method_config. UserError if the name is taken.
void register_method(const MethodConfig& config, std::unique_ptr<Method> (*build)(const Setting& setting));
std::unique_ptr<Method> build_method(const Setting& setting);

// The method's way from a row to an example, for data::Dataset::build; both must outlive it. UserError for a row of a
// kind that is not among the method's facts.
data::Prepare preparation(const Method& method, const MethodConfig& config);

// Concatenates the examples' sequences: first the first sequence of every example, then every second one (so a pair's
// chosen sequences come before the rejected ones).
Batch flat_batch(std::span<const data::Example* const> examples);
// Selects the labelled rows of hidden [tokens, size]; returns (rows, labels).
std::pair<Tensor, Tensor> labelled_rows(const Tensor& hidden, const Batch& batch);

}  // namespace easydel::train
