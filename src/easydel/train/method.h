// A training method: how rows become examples, what a micro-batch contains and which loss is minimised. The loop, the
// optimizer and checkpoints belong to Trainer; a method does not touch them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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
#include "easydel/train/ranks.h"
#include "easydel/train/sampler.h"

namespace easydel::train {

// A micro-batch: one flat list of tokens.
struct Batch {
  Tensor tokens;                    // int64 [tokens]
  Tensor labels;                    // int64 [tokens], shifted; data::no_label: not learned
  std::vector<int64_t> cu_seqlens;  // where each sequence begins, and the end
  int64_t examples = 0;
  int64_t labelled = 0;  // labels that are not no_label
  // The examples' columns by name, fp32 or int64 [examples], [sequences] or [tokens], in the batch's order; lists are
  // concatenated.
  std::map<std::string, Tensor, std::less<>> columns;
  // The batch's weight, summed over micro-batches and ranks; the step's losses are divided by that sum.
  double weight = 0;
  int64_t size() const { return cu_seqlens.back(); }
  bool has(std::string_view column) const { return columns.find(column) != columns.end(); }
  const Tensor& column(std::string_view name) const;  // Bug if there is none
};

// A column of int64 [tokens]: which of a pair of texts a token belongs to, for families with token types.
inline constexpr const char* token_types = "token_types";

struct Metric {
  // How the micro-batches of an update become one number.
  enum class Over : uint8_t {
    batches,          // the mean of their means; one without a count is 0
    counted_batches,  // the mean of the means of those that have a count
    everything        // the sum of their sums, divided by that of their counts
  };
  std::string name;
  double sum = 0, count = 0;  // added over ranks, then divided
  Over over = Over::batches;
  bool exponential = false;  // what is reported is e to the power of it

  double value() const;
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

  bool adapters = true;  // false: the model without its adapters

  RouterWatch* routers = nullptr;  // records the routers' outputs; null: not requested
  const Ranks* ranks = nullptr;    // that share the micro-batch; null: this one alone
  double share = 1;                // 0: this rank's examples are lent by another one, and count nowhere
  int64_t part = 0;                // which micro-batch of the update this is
  // Gets every named tensor of the forward with its gradient (nn::Activations::capture), a layer's output under the
  // layer's path; and with `attention_weights` the probabilities [heads, queries, keys] of each sequence, under the
  // layer's path and ".attn_weights".
  std::function<void(std::string_view name, const Tensor&)> capture = {};
  bool attention_weights = false;
  double embedding_noise = 0;  // nn::Randomness

  // Runs the model on the batch. `pass` is set to the pass that was created; heads receive it, too. The trainer adds
  // router losses.
  models::Outputs run(const models::Model& model, const Batch& batch, nn::Pass& pass) const;

  // Quantities of the whole micro-batch, equal on all ranks, with gradients. Collective. A loss that is computed from
  // them is the same on all ranks: each rank's Loss::sum is it times the rank's own weight.
  Tensor sum(const Tensor& x) const;        // elementwise, of all ranks' tensors
  Tensor gather(const Tensor& rows) const;  // [rows of all ranks, ...] from [rows, ...], in the order of the examples
  double total(double x) const;             // without a gradient
  // The mean over the whole micro-batch of what sums to `sum` here and counts `count`, such that the ranks' results
  // times their weights add up to the mean times the weight of all.
  Tensor mean(const Tensor& sum, const Tensor& count, double weight) const;
};

// A micro-batch of an update, and how its loss will be computed.
struct UpdatePart {
  const Batch& batch;
  Forwarding forwarding;
};

// All examples that a run will use, before its first step.
struct Examination {
  std::vector<data::Dataset*> sets;  // to train on, and to evaluate on
  const Forwarding& forwarding;
  const Ranks& ranks;
  std::filesystem::path folder;  // of the run, for what a resumed run should not compute again
  std::string order_class;       // of additions
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
  // Whether examples depend on their neighbours in the micro-batch. Then each rank makes all of them, and
  // collate_part() has the whole micro-batch; else only this rank's part.
  virtual bool needs_neighbours() const { return false; }
  // A rank's part [begin, end) of a micro-batch.
  virtual Batch collate_part(std::span<const data::Example* const> whole, size_t begin, size_t end) const {
    return collate(whole.subspan(begin, end - begin));
  }
  virtual Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const = 0;
  // The divisor of a step's sum of losses, given the summed weights of its batches.
  virtual double divisor(double weight) const { return weight; }
  // Once before the first step (precomputed log-probabilities). Collective.
  virtual void examine(const Examination&) {}
  // Of a method that samples: what its largest generation and micro-batch have; zeros if it does not say.
  struct SampledSizes {
    int64_t completions = 0;        // of a generation, or of the part that is sampled together
    int64_t sequences = 0;          // of a micro-batch, on all ranks
    int64_t completion_tokens = 0;  // of a sequence, at most
  };
  // Nothing: it does not sample in this run, but learns the rows themselves.
  virtual std::optional<SampledSizes> sampled_sizes() const { return SampledSizes(); }
  // Rows that are evaluated, as examples that loss() knows: a method that samples completes prompts. `first`: how many
  // were evaluated before, which draws depend on. Collective.
  virtual std::vector<data::Example> evaluated(std::vector<data::Example> rows, const Sampler* /*sampler*/,
                                               int64_t /*first*/) {
    return rows;
  }
  // Examples that evaluated() makes of a row.
  virtual int64_t evaluated_per_row() const { return 1; }
  // Before the first micro-batch of an update; `parts`: all of them, by Forwarding::part. What a method changes in
  // loss() counts only once updated() is called: an update may be dropped, and losses are also computed to measure
  // memory. Collective.
  virtual void begin_update(const models::Model&, std::span<const UpdatePart> /*parts*/) {}
  // Adds files to a folder that has the model's weights. Called by the first rank.
  virtual void write_files(const std::filesystem::path& /*folder*/) const {}
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
  SideModel reference, teacher;
  std::vector<SideModel> rewards;
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
void register_method(const MethodConfig& config, std::unique_ptr<Method> (*build)(const Setting& setting),
                     const std::filesystem::path& library = {});
std::unique_ptr<Method> build_method(const Setting& setting);

// The method's way from a row to an example, for data::Dataset::build; both must outlive it. UserError for a row of a
// kind that is not among the method's facts.
data::Prepare preparation(const Method& method, const MethodConfig& config);

// Concatenates the examples' sequences: first the first sequence of every example, then every second one (so a pair's
// chosen sequences come before the rejected ones).
Batch flat_batch(std::span<const data::Example* const> examples);
// Selects the labelled rows of hidden [tokens, size]; returns (rows, labels).
std::pair<Tensor, Tensor> labelled_rows(const Tensor& hidden, const Batch& batch);
// The same, and tells `pass` that its head reads these rows.
std::pair<Tensor, Tensor> labelled_rows(const Tensor& hidden, const Batch& batch, nn::Pass& pass);

}  // namespace easydel::train
