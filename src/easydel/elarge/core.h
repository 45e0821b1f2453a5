// The interface to everything that needs torch. libeasydel_core.so implements these abstract classes and is loaded on
// first use, so that commands without torch do not wait for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/elarge/elarge.h"
#include "easydel/generation/generation_config.h"
#include "easydel/hub/push.h"

namespace easydel::data {
class Dataset;
struct RunData;
}  // namespace easydel::data
namespace easydel::esurge {
class Engine;
}
namespace easydel::models {
class Model;
}
namespace easydel::text {
class Tokenizer;
}
namespace easydel::text::constrain {
class Automaton;
}
namespace easydel::train {
class Trainer;
}

namespace easydel::elarge {

// Where results go (standard output of the program).
using Output = std::function<void(std::string_view)>;

struct Generated;

struct GenerateRequest {
  std::vector<std::string> prompts;              // each alone
  int64_t batch = 16;                            // maximum number of sequences decoded together
  std::vector<Value> conversations;              // instead of prompts: lists of messages, put through the chat template
  std::string negative_prompt;                   // with guidance_scale; empty: none
  generation::GenerationConfig generation = {};  // keys that are not given are the model's own
  bool engine = false;                           // by the engine (esurge/engine.h) instead of the plain loop
  // The new text of result `index` while it is generated; may be empty. With beams: the whole text at the end.
  std::function<void(size_t index, std::string_view piece)> on_text;
  // What the continuations have to be (text/constrain/constraint.h); null: any text.
  std::shared_ptr<const text::constrain::Automaton> constraint = nullptr;
  // Each result when it is complete, in the order in which they end.
  std::function<void(const Generated&)> on_result;
  const std::atomic<bool>* stop = nullptr;   // set by another thread or a signal handler: end with the text so far
  std::optional<std::string> chat_template;  // instead of the tokenizer's
};

// Of each prompt num_return_sequences, best first.
struct Generated {
  size_t prompt = 0;  // its number
  std::string text;   // what it adds to the prompt's text
  int64_t prompt_tokens = 0, new_tokens = 0;
  std::string finish_reason;                       // "end", "stop_string", "length", "max_time", "cancelled"
  std::optional<double> score = {};                // of beams
  double prefill_seconds = 0, decode_seconds = 0;  // of the batch that it ran in
};

// A signal ended the training after its checkpoint was saved. The exit status is 128 + signal.
struct Interrupted : std::runtime_error {
  explicit Interrupted(int signal) : std::runtime_error("interrupted"), signal(signal) {}
  int signal;
};

struct TrainerOutput {
  int64_t step = 0, steps = 0;            // updates done; updates of the run
  std::map<std::string, double> metrics;  // "train_loss"; "eval_loss" and "eval_loss_before" if evaluated
  std::filesystem::path checkpoint;       // the newest; empty: none
};

// Runs one configuration. Models are loaded on first use and shared by the actions: after train(), generate() uses the
// trained weights. The session keeps a reference to everything it builds. One thread at a time.
class Session {
 public:
  virtual ~Session() = default;
  virtual std::shared_ptr<models::Model> build_model() = 0;  // what train() and generate() use
  // The frozen model of another section ("teacher_model"); nullptr: the configuration has no such section.
  virtual std::shared_ptr<models::Model> build_side_model(const std::string& section) = 0;
  virtual std::shared_ptr<const text::Tokenizer> build_tokenizer() = 0;
  virtual std::shared_ptr<data::Dataset> build_dataset() = 0;   // the training examples
  virtual std::shared_ptr<train::Trainer> build_trainer() = 0;  // reads the data; each call makes a new one
  // An engine over the model, with the section `esurge`; each call makes a new one.
  virtual std::shared_ptr<esurge::Engine> build_esurge() = 0;
  virtual TrainerOutput train(const Output& out) = 0;  // throws Interrupted
  virtual std::vector<Generated> generate(const GenerateRequest& request) = 0;
  // Pushes the current model, and its tokenizer if it has one, to the Hugging Face Hub; sends only files that changed.
  // Errors name `where`. Collective: every rank calls it, the first one sends.
  virtual hub::Pushed push_to_hub(const std::string& where, const hub::PushOptions& options) = 0;
};

// How the model of a run is sharded over `devices` ranks. No rank is started and no weight is read.
struct MeshPlan {
  const Config& config;
  int64_t devices = 1, hosts = 1;
  int64_t rank = 0;  // the rank whose shards are shown
};

// A tensor of a checkpoint that does not exist yet.
struct PlannedTensor {
  std::string name;
  std::vector<int64_t> shape;
};

// What a run is for, as far as its checks depend on it.
struct Purpose {
  bool trains = false;      // the models are loaded for training
  bool reads_data = false;  // the first rows of the data are prepared
};

// Adapters to merge into a model, in this order.
struct MergeRequest {
  struct Part {
    std::filesystem::path folder;
    double weight = 1;
  };
  std::filesystem::path model, output;
  std::vector<Part> adapters;
  models::DTypeSetting dtype = models::DTypeSetting::automatic;  // of the saved weights; automatic: the model's
};

class Core {
 public:
  virtual ~Core() = default;
  // `trains`: the session will train, so load the model for training.
  virtual std::unique_ptr<Session> open(const Config& config, bool trains) = 0;
  // Refuses what open() and its session would refuse about the models and the first rows of the data, without memory
  // for weights and without joining the other ranks: UserError.
  virtual void check(const Config& config, int64_t ranks, Purpose purpose) = 0;
  // The data of the run as its training method prepares them. UserError: there are none, the method is not built, or
  // model or tokenizer are not there.
  virtual data::RunData run_data(const Config& config) = 0;
  // The tensors of a checkpoint for this config.json. UserError if the model cannot be built.
  virtual std::vector<PlannedTensor> plan_model(const Value& config, const Where& where) = 0;
  virtual std::string describe_mesh(const MeshPlan& plan) = 0;
  // Writes the model with the adapters merged: fp32(W) + weight * scale * B A, rounded once. The model's weights stay
  // mapped, so that no more than a tensor of them is in memory.
  virtual void merge(const MergeRequest& request) = 0;
  // A plug-in's library with families and methods from outside the tree (elarge/plugin.h). UserError if it does not
  // fit.
  virtual void load_plugin(const std::filesystem::path& file) = 0;
  // Version and speed of torch, relative to the measured peak, for `doctor`.
  virtual std::string doctor(double peak_gflops) = 0;
};

// Loads libeasydel_core.so (next to libeasydel_base.so) at the first call. UserError if it cannot be loaded.
Core& core();
// A function of that library by its name (another layer's door, as probe/core.h); UserError as core().
void* core_symbol(const char* name);
// Whether the library's file exists.
bool core_is_there();

}  // namespace easydel::elarge
