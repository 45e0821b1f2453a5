// The actions of a run: one entry per action; the list is in actions.cpp.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/elarge/core.h"
#include "easydel/elarge/elarge.h"

namespace easydel::elarge {

class Evaluation;

// The state of a run while its actions are running.
class Running {
 public:
  Running(const Run& run, Output out);
  ~Running();
  Session& session();  // loads torch on first use
  // The tasks of an action eval, built at the first call.
  Evaluation& evaluation(const Action& action);
  bool leads() const { return bool(out_); }
  void print(std::string_view text) {  // results of rank 0; other ranks print nothing
    if (out_) out_(text);
  }
  const Output& out() const { return out_; }

  const Run& run;

 private:
  Output out_;
  std::unique_ptr<Session> session_;
  std::map<const Action*, std::unique_ptr<Evaluation>> evaluations_;
};

// What an action uses, and what is therefore checked before any action runs.
struct Needs {
  bool model = false;  // check its folder, and that the mesh matches the number of ranks
  bool tokenizer = false;
  bool data = false;
  bool computing = false;  // uses torch: refuse what is not built
  bool harness = false;    // find lm-evaluation-harness and build its tasks before the first action
  bool training = false;   // check the training data, the batch size and the save folder
};

struct ActionEntry {
  std::string_view name;
  std::string_view doc;
  std::vector<std::string_view> aliases = {};
  const config::Section* (*parameters)() = nullptr;  // null: no parameters
  std::shared_ptr<void> (*make_parameters)() = nullptr;
  std::string_view alone = {};  // "path": `to_yaml: out.yaml` is short for `to_yaml: {path: out.yaml}`
  bool built = true;
  Needs needs = {};
  // Checks this action's own parameters before anything runs.
  void (*check)(const Run& run, const Action& action, config::Problems& problems) = nullptr;
  void (*run)(Running& running, const Action& action) = nullptr;
};

std::span<const ActionEntry> action_entries();
const ActionEntry* find_action(std::string_view name);  // by name or alias, in any case, with - or _

// The actions of a document; adds what is wrong with them to `problems`.
std::vector<Action> read_actions(const Value* actions, config::Problems& problems);

// Checks that need torch, before anything runs: whether the weights match config.json, whether the device exists. Runs
// without computation skip them if libeasydel_core.so does not exist.
void check_with_torch(const Run& run);

// check_with_torch, then runs the actions in order; throws the first error. Ranks other than 0 pass no output.
void run_actions(const Run& run, const Output& out);

// The needs of all actions of the run together.
Needs needs_of(const Run& run);

// Adds to `problems` settings that would change results but are not built yet.
void check_built(const Config& config, bool training, config::Problems& problems);
// Adds to `problems` what would stop the run later, as far as it can be checked without torch.
void check_needs(const Run& run, config::Problems& problems);
// Adds what is wrong with the folder of a model that is served besides the run's own, all of it at `path`.
void check_served_model(const Config& config, const std::string& path, config::Problems& problems);
// The same for the parameters of single actions.
void check_generate(const Run&, const Action&, config::Problems&);
void check_eval(const Run&, const Action&, config::Problems&);
void check_writable(const Run&, const Action&, config::Problems&);
void check_push(const Run&, const Action&, config::Problems&);
void check_serve(const Run&, const Action&, config::Problems&);

void run_serve(Running& running, const Action& action);  // the action `serve` (serve_action.cpp)

// UserError if the model that an action reads has no weights: its folder has none, and no earlier action of the run
// trains it. `complete`: resolve the name to all of the model's files.
void refuse_without_weights(const Run& run, const Action& reader, bool complete);

std::string valid_text(const Run& run);  // "run.yaml is valid: 2 actions\n"
// A few lines for people: model, data, training, mesh.
std::string summary(const Config& config);

}  // namespace easydel::elarge
