// The door to everything that needs torch. libeasydel_core.so is loaded when it is first asked for; what it can do is
// behind these abstract classes, so that commands which need no torch never wait for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/elarge/elarge.h"
#include "easydel/elarge/vector_kind.h"

namespace easydel::elarge {

// Where results go (standard output of the program).
using Output = std::function<void(std::string_view)>;

struct GenerateRequest {
  std::vector<std::string> prompts;  // each alone
  int64_t batch = 16;                // most sequences that are decoded together
  std::vector<Value> conversations;  // instead of prompts: lists of messages, put through the chat template
  std::string negative_prompt;       // with guidance_scale: what the text is led away from; empty: nothing
  Value generation = Value::map();   // keys of generation::GenerationConfig that are to replace the model's own
  // The new text of result `index` as it comes; may be empty. Of beams the whole text at the end.
  std::function<void(size_t index, std::string_view piece)> on_text;
  const std::atomic<bool>* stop = nullptr;  // set by another thread or a signal: end with what is there
};

// Of each prompt num_return_sequences, best first.
struct Generated {
  size_t prompt = 0;  // its number
  std::string text;   // the continuation alone
  int64_t prompt_tokens = 0, new_tokens = 0;
  std::string finish_reason;  // "end", "stop_string", "length", "max_time", "cancelled"
  std::optional<double> score = {};  // of beams
  double prefill_seconds = 0, decode_seconds = 0;  // of the batch that it ran in
};

// A signal ended the training, after its checkpoint was saved; the exit status is 128 + signal.
struct Interrupted : std::runtime_error {
  explicit Interrupted(int signal) : std::runtime_error("interrupted"), signal(signal) {}
  int signal;
};

// One configuration at work. Models are loaded when first needed and shared by its actions: after train(),
// generate() uses the trained weights. One thread at a time.
class Session {
 public:
  virtual ~Session() = default;
  virtual void build_model() = 0;             // loads what train() and generate() would load
  virtual void build_tokenizer() = 0;
  virtual void train(const Output& out) = 0;  // throws Interrupted
  virtual std::vector<Generated> generate(const GenerateRequest& request) = 0;
};

struct ProbeLogits {
  std::filesystem::path model, inputs, output;
  std::optional<std::filesystem::path> trace;
  std::string device = "auto";
};
struct ProbeReplay {
  std::filesystem::path test_case, root, output;
  std::optional<std::filesystem::path> parameters;
};

// A plan of how a run's model lies on `devices` ranks; none of them is started, and no weight is read.
struct MeshPlan {
  const Config& config;
  int64_t devices = 1, hosts = 1;
  int64_t rank = 0;  // whose parts are shown
};

class Core {
 public:
  virtual ~Core() = default;
  // `trains`: the session will train, so that the model is loaded for that at once.
  virtual std::unique_ptr<Session> open(const Config& config, bool trains) = 0;
  // What open() and its session would refuse of the models, found without room for weights and without joining the
  // other ranks: UserError.
  virtual void check(const Config& config, int64_t ranks, bool trains) = 0;
  virtual void probe_logits(const ProbeLogits& probe) = 0;
  virtual void probe_replay(const ProbeReplay& probe) = 0;
  virtual std::string describe_mesh(const MeshPlan& plan) = 0;
  // The kinds of recorded cases whose answers need torch.
  virtual const std::vector<VectorKind>& vector_kinds() = 0;
  // What torch is and how fast, for `doctor`, against the measured peak.
  virtual std::string doctor(double peak_gflops) = 0;
};

// Loads libeasydel_core.so (beside libeasydel_base.so) at the first call. UserError where it cannot be loaded.
Core& core();
// Whether the library's file is there.
bool core_is_there();

}  // namespace easydel::elarge
