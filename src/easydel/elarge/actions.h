// What a run can do. One entry an action; the list is in actions.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/elarge/core.h"
#include "easydel/elarge/elarge.h"

namespace easydel::elarge {

// A run while its actions are done.
class Running {
 public:
  Running(const Run& run, Output out) : run(run), out_(std::move(out)) {}
  Session& session();  // loads torch when first asked
  bool leads() const { return static_cast<bool>(out_); }
  void print(std::string_view text) {  // rank 0's results; nothing on other ranks
    if (out_) out_(text);
  }
  const Output& out() const { return out_; }

  const Run& run;

 private:
  Output out_;
  std::unique_ptr<Session> session_;
};

// What an action looks at, and what is therefore checked before any action runs.
struct Needs {
  bool model = false;  // its folder, and that the mesh fits the ranks
  bool tokenizer = false;
  bool data = false;
  bool computing = false;  // with torch: what is not built is refused
  bool training = false;   // something to learn from, a batch that divides, a folder to save in
};

struct ActionEntry {
  std::string_view name;
  std::string_view doc;
  std::vector<std::string_view> aliases = {};
  const config::Section* (*parameters)() = nullptr;  // null: it takes none
  std::shared_ptr<void> (*make_parameters)() = nullptr;
  std::string_view alone = {};  // "path": `to_yaml: out.yaml` is short for `to_yaml: {path: out.yaml}`
  bool built = true;
  Needs needs = {};
  // Finds out before anything runs what would go wrong later with this action's own parameters.
  void (*check)(const Run& run, const Action& action, config::Problems& problems) = nullptr;
  void (*run)(Running& running, const Action& action) = nullptr;
};

std::span<const ActionEntry> action_entries();
const ActionEntry* find_action(std::string_view name);  // by name or alias, in any case, with - or _

// The actions that a document asks for; what is wrong with them goes to `problems`.
std::vector<Action> read_actions(const Value* actions, config::Problems& problems);

// What only torch can say before anything is done: whether the weights fit config.json, whether the device is there. A
// run that computes nothing is checked without it where libeasydel_core.so cannot be loaded.
void check_with_torch(const Run& run);

// Checks with torch, then does the run's actions in order; stops at the first error (which is thrown). Ranks other than
// 0 pass no output.
void run_actions(const Run& run, const Output& out);

// What some action of the run needs.
Needs needs_of(const Run& run);

// Adds to `problems` what is written in the configuration and would change the numbers, but is not built yet.
void check_built(const Config& config, bool training, config::Problems& problems);
// Adds to `problems` what would stop the run later, as far as it can be found out without torch.
void check_needs(const Run& run, config::Problems& problems);
// The same for the parameters of single actions.
void check_generate(const Run&, const Action&, config::Problems&);
void check_writable(const Run&, const Action&, config::Problems&);
void check_push(const Run&, const Action&, config::Problems&);

std::string valid_text(const Run& run);  // "run.yaml is valid: 2 actions\n"
// A few lines for people: model, data, training, mesh.
std::string summary(const Config& config);

}  // namespace easydel::elarge
