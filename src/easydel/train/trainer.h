// The training loop: steps over a source's examples, evaluation, checkpoints, resuming. What is minimised is the
// method's business.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "easydel/data/dataset.h"
#include "easydel/data/run_data.h"
#include "easydel/models/model.h"
#include "easydel/train/batch_source.h"
#include "easydel/train/benchmarks_config.h"
#include "easydel/train/best_model.h"
#include "easydel/train/checkpoints.h"
#include "easydel/train/memory_plan.h"
#include "easydel/train/method.h"
#include "easydel/train/previews.h"
#include "easydel/train/ranks.h"
#include "easydel/train/report.h"
#include "easydel/train/state_files.h"
#include "easydel/train/transformation.h"

namespace easydel::train {

class EventFile;

struct TrainerParts {
  TrainerSection trainer;
  data::MixtureConfig mixture;
  std::shared_ptr<models::Model> model;  // loaded with LoadOptions::training
  SideModels side;                       // that the method has a use for
  std::shared_ptr<const text::Tokenizer> tokenizer;
  models::LoadOptions load;  // how the model was loaded: a checkpoint is loaded in the same way
  nn::CheckpointPolicy checkpointing;
  models::DTypeSetting save_dtype =
      models::DTypeSetting::automatic;  // of saved weights, as models::save_model takes it
  Value document;                       // the run's configuration, for state.json
  std::string model_name = {};          // as adapters name their model; empty: its folder
  Watcher* watcher = nullptr;           // outlives the trainer
  Benchmarks* benchmarks = nullptr;     // as trainer.benchmarks says; outlives the trainer; null: none
  // From checkpoints_before_loading(), locked by the first rank; none: the trainer makes and locks its own.
  std::optional<Checkpoints> checkpoints = {};
};

// The run's checkpoints, so that a folder in use is refused before the model is loaded; none: their folder is named
// after the model's family, which only the loaded model knows.
std::optional<Checkpoints> checkpoints_before_loading(const TrainerSection& trainer,
                                                      const std::filesystem::path& model_folder);

// What a run will be, before it begins.
struct RunPlan {
  int64_t parameters = 0, trainable = 0;
  int64_t examples = 0, tokens = 0, labels = 0, longest = 0;  // of an epoch
  std::vector<std::string> mistakes;  // what people should know of the rows: data/row_mistakes.h
  int64_t evaluation_examples = 0, evaluation_tokens = 0;
  int64_t update = 0, micro_batches = 0;  // examples in an update, and in how many micro-batches they are computed
  int64_t steps_in_epoch = 0, steps = 0, from_step = 0;
  MemoryPlan memory;
  std::string checkpoint;        // that the run goes on from; empty: none
  std::string folder;            // of the checkpoints
  int64_t checkpoint_bytes = 0;  // of one
  std::string text() const;      // a few lines for people
};

struct Outcome {
  int64_t step = 0, steps = 0;                    // updates made, of the run
  double train_loss = 0;                          // mean over the steps of this call
  std::optional<EvaluationReport> before, after;  // the first and the last evaluation
  std::filesystem::path checkpoint;               // the newest that was written or found, or the best; empty: none
  std::optional<int64_t> best_step;               // of load_best_model_at_end: the model has the weights of this step
  int signal = 0;                                 // that ended the run: exit status 128 + signal; 0: none
  bool finished = true;                           // all steps were made
};

class Trainer {
 public:
  // Reads and prepares all data, takes the lock on the run's folder and finds the checkpoint to go on from. UserError
  // for what is wrong with them, or if another process trains in this folder.
  explicit Trainer(TrainerParts parts);
  // Trains on a program's own examples instead of the mixture's: there is no evaluation, and the tokenizer may be
  // missing. `source` decides how many examples a step has. `tx`: nothing is what the trainer's keys say.
  Trainer(TrainerParts parts, std::unique_ptr<BatchSource> source, std::optional<Transformation> tx = {});
  ~Trainer();

  const RunPlan& plan() const { return plan_; }
  // Trains to the end, to a signal, or to the time limit. A signal ends it after the micro-batch or the batch of an
  // evaluation that is computed, and one save. UserError if the loss or the weights are not finite (what would be saved
  // then is never resumed from), or if the disk fails.
  Outcome run();
  EvaluationReport evaluate();  // UserError without evaluation data
  models::Model& model() { return *parts_.model; }

 private:
  struct StepResult {
    double loss = 0, gradient_norm = 0;
    int64_t tokens = 0, examples = 0;
    std::vector<std::pair<std::string, double>> metrics;
    bool finite() const { return std::isfinite(loss) && std::isfinite(gradient_norm); }
  };
  // This rank's part of a micro-batch. A rank that has nothing to learn from in it goes along with an example of
  // another rank's, with share 0: all ranks must do the same gathers and sums.
  struct RankBatch {
    Batch batch;
    double share = 1;         // of its loss, weight, counts and metrics
    int64_t first_token = 0;  // of the part in the whole micro-batch
    int64_t tokens = 0;       // of the whole micro-batch
  };
  class Course;  // of a run, from step to step
  struct Composing {};
  Trainer(TrainerParts parts, Composing);  // without examples and an optimizer
  void begin(std::optional<Transformation> tx);
  // Asked between micro-batches; true on all ranks if it is on one.
  using Stop = std::function<bool()>;
  const TrainerConfig& config() const { return parts_.trainer.common; }
  void worked(Work::Kind kind, int64_t done, int64_t total) const;  // tells the watcher
  void build_data();
  void make_plan();
  std::string chat_disagreement() const;
  // Refuses a run that cannot fit. Collective.
  void plan_memory();
  // `of_method`: by the method's loss; else by the scores of the example's tokens.
  void measure_activations(const data::Example& example, bool of_method = true);
  void resume();
  Forwarding forwarding(bool training) const;
  RankBatch rank_batch_of(const MicroBatch& micro) const;
  RankBatch rank_batch_of(const RankExamples& own, size_t micro) const;
  std::vector<RankBatch> rank_batches_of(int64_t step) const;
  // mean_share: what a mean over the part counts in the loss's sum.
  Loss loss_of(const RankBatch& part, Forwarding how, double mean_share) const;
  // Nothing: it was stopped between two micro-batches, and nothing has changed.
  std::optional<StepResult> update(int64_t step, bool metrics, const Stop& stop);
  std::optional<EvaluationReport> evaluate(const Stop& stop);  // nothing: it was stopped
  std::optional<BenchmarkReport> run_benchmarks(const std::atomic<bool>& stop);
  std::vector<Preview> make_previews(int64_t step);
  // Those of the trained parameters, if they are due. Collective; `events` is null on all ranks but one.
  void add_weight_histograms(int64_t step, EventFile* events) const;
  bool is_due(int64_t step, std::optional<int64_t> interval) const;
  Value bad_rows() const;  // for a checkpoint; collective
  void save(int64_t step);
  // The state before a step whose loss was not finite: kept under a name that no run resumes from. Empty: there is
  // nothing to keep.
  std::filesystem::path keep_diverged(int64_t step);
  std::string not_finite() const;  // a parameter with NaN or infinity on any rank; empty: none
  RunState state_at(int64_t step) const;
  Value document() const;  // the run's configuration, for state.json
  void check_changes(const std::filesystem::path& checkpoint, const Value& before);
  void write_checkpoint(const std::filesystem::path& folder, const RunState& state);
  void write_model(const std::filesystem::path& folder, bool at_end);  // or the adapter that is trained, or both
  double rate_at(int64_t step) const { return schedule_.at(step) * best_->rate_scale(); }
  std::string order() const;  // of additions: this process's and the mesh's
  std::string title() const;

  TrainerParts parts_;
  Ranks ranks_;
  std::unique_ptr<Method> method_;
  std::unique_ptr<Sampler> sampler_;  // null: the method does not sample
  std::unique_ptr<BatchSource> source_;
  std::shared_ptr<data::Dataset> training_;
  struct EvaluationSet {
    std::string name;  // empty: of the informs without a name
    std::shared_ptr<data::Dataset> data;
  };
  std::vector<EvaluationSet> evaluation_sets_;
  std::unique_ptr<Optimizer> optimizer_;
  Schedule schedule_;
  std::optional<double> clip_grad_;
  RunPlan plan_;
  int64_t side_bytes_ = 0;  // of the models beside the trained one
  Checkpoints checkpoints_;
  std::filesystem::path resumed_from_, last_saved_;
  int64_t tokens_seen_ = 0, saved_step_ = -1;
  RunHistory history_;
  std::optional<BestModel> best_;
  std::optional<Previews> previews_;
  bool history_is_known_ = true;  // false: the checkpoint is of a version that did not save it
  std::string changes_;           // of the configuration since the checkpoint; empty: none
  bool router_losses_ = false;    // are part of every loss
};

// Of the first rows of all sources that are trained on.
struct FirstRows {
  int64_t rows = 0, tokens = 0, labelled = 0, longest = 0;
  int64_t packed_length = 0;  // of a row after packing; 0: rows are not packed
};

// Prepares the first rows of the data as such a trainer would, without a model, for one of `vocabulary` tokens.
// UserError as Trainer.
FirstRows check_data(TrainerSection trainer, const data::MixtureConfig& mixture,
                     std::shared_ptr<const text::Tokenizer> tokenizer, int64_t vocabulary);

// The data as such a trainer would prepare them, without a model, for one of this task. `end_tokens`: as RunData's.
// UserError as Trainer.
data::RunData run_data(TrainerSection trainer, const data::MixtureConfig& mixture,
                       std::shared_ptr<const text::Tokenizer> tokenizer, int64_t vocabulary, models::Task task,
                       const std::vector<int32_t>& end_tokens = {});

// The examples that such a trainer would learn from, without a model. UserError as Trainer.
std::shared_ptr<data::Dataset> build_dataset(TrainerSection trainer, const data::MixtureConfig& mixture,
                                             std::shared_ptr<const text::Tokenizer> tokenizer);

}  // namespace easydel::train
