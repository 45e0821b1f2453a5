// What a checkpoint contains in addition to the model folder, so that a run resumes with the same bits: state.json, and
// the optimizer's tensors with the fp32 masters in optimizer/, where nobody who loads the model looks for weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/train/benchmarks_config.h"
#include "easydel/train/method_state.h"
#include "easydel/train/optimizer.h"
#include "easydel/train/ranks.h"

namespace easydel::train {

// What a run has reported so far, over all the processes that it took.
struct RunHistory {
  struct Evaluation {
    int64_t step = 0;
    double loss = 0;
  };
  struct Benchmarked {
    int64_t step = 0;
    BenchmarkMetrics metrics;
  };
  double seconds = 0;  // of training, evaluating and saving
  // Of the steps since the last record in metrics.jsonl.
  double unrecorded_loss = 0;
  int64_t unrecorded_steps = 0;
  std::optional<Evaluation> first_evaluation, last_evaluation;
  std::optional<Benchmarked> last_benchmarks;
  std::optional<int64_t> last_preview;  // its step
  Value best_model;                     // BestModel::state()
};

struct RunState {
  int64_t step = 0;  // updates done
  int64_t tokens_seen = 0;
  int64_t optimizer_steps = 0;
  uint64_t seed = 0;        // of order and dropout; with `step` all of the run's randomness
  Value cursor;             // where the next step begins: {epoch, index}
  std::string data;         // fingerprint of the dataset
  int64_t update = 0;       // examples in an update
  std::string order_class;  // of additions, as kernels name it
  Value method;             // the document of the method's state; null: none
  Value document;           // the run's configuration
  Value bad_rows;           // of the training data that were skipped: {count, first}; null: none
  bool has_optimizer = true;
  std::optional<RunHistory> history;  // nothing: the checkpoint does not say
};

// Names the order of additions of this process: runs with the same name have the same bits. Kernels add in the same
// order on every instruction set; torch's sums depend on the number of threads.
std::string order_class(at::ScalarType compute);

// Where a checkpoint has its adapter, in PEFT's files.
inline std::filesystem::path adapter_folder(const std::filesystem::path& checkpoint) { return checkpoint / "adapter"; }
// The adapter that a run trains; null: it trains the model.
const models::Adapter* trained_adapter(const models::Model& model);
// Whether the run ends with a merged model in addition to its adapter.
bool merges_adapter(const models::Model& model, bool merge_lora_before_save);
// How: by lora.merge_base and lora.merge_to_codes. UserError as models::merge_options.
models::MergeOptions merge_of_run(const models::Model& model, const models::LoadOptions& load);

// Whether a checkpoint's file is only for resuming, and not part of the model.
bool is_of_training(std::string_view name);

void write_state(const std::filesystem::path& folder, const RunState& state);
RunState read_state(const std::filesystem::path& folder);  // UserError if it is not a valid state.json
// What is missing in a checkpoint whose manifest lists these names, for Checkpoints: config.json, all weights,
// state.json, and the optimizer's state if it was saved. Empty: nothing. UserError for a file that cannot be parsed.
std::string missing_in_state(const std::filesystem::path& checkpoint, const std::set<std::string>& listed);

// Puts the trained weights of a checkpoint into the model, as precisely as they were saved. `load` is how the model was
// loaded. UserError if the checkpoint is of another model. Collective.
void load_weights(const std::filesystem::path& folder, const models::LoadOptions& load, models::Model& model);

// The optimizer's states; the masters too if the model's folder does not hold them in fp32; and the tensors of the
// method's state. Whole tensors, whatever the mesh; collective, the first rank writes.
void write_optimizer(const Ranks& ranks, const std::filesystem::path& folder, Optimizer& optimizer,
                     const MethodState& method = {});
// Puts this rank's part of the masters into the model and the rest into the optimizer; `restore` gets what there is of
// the method's state, unless the checkpoint has no optimizer's file. `load` is how the model was loaded. UserError
// "file: what" if the checkpoint is of another model.
void read_optimizer(const std::filesystem::path& folder, const models::LoadOptions& load, models::Model& model,
                    Optimizer& optimizer, const std::function<void(const weights::SafetensorsFile&)>& restore = {});

}  // namespace easydel::train
