// Plug-ins: model families, training methods, rewards and functions over rows from outside the tree, in a shared
// library that is built against the installed package and named by --plugin or EASYDEL_PLUGINS. It defines two
// functions (examples/plugin has whole ones):
//
//   extern "C" const char* easydel_plugin_abi() { return easydel::elarge::kPluginAbi; }  // elarge/plugin_abi.h
//   extern "C" void easydel_plugin(easydel::elarge::Registry& registry) { registry.add(mine(), {"mine", {...}}); }
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "easydel/data/row_function.h"
#include "easydel/models/register_family.h"
#include "easydel/train/environment.h"
#include "easydel/train/method.h"
#include "easydel/train/rewards.h"

namespace easydel::elarge {

// What a plug-in gives to the program. Names and texts must live as long as the library, which is never unloaded.
class Registry {
 public:
  // `library`: the plug-in.
  explicit Registry(std::filesystem::path library) : library_(std::move(library)) {}
  // A model family: how it is built, and its architectures, the usual one first. UserError if the model_type is taken.
  void add(const models::Family& family, const models::FamilyConfig& config) {
    models::register_family(family, config);
  }
  // A training method: its keys and facts (train::method_config<Keys>), and how it is built. UserError if the name is
  // taken.
  void add(const train::MethodConfig& method, std::unique_ptr<train::Method> (*build)(const train::Setting& setting)) {
    train::register_method(method, build, library_);
  }
  // A reward of sampled completions, for entries {type: plugin, function: name} of trainer.rewards. UserError if the
  // name is taken.
  void add_reward(const std::string& name, train::RewardFunction function) { train::register_reward(name, function); }
  // What answers a model in episodes, for trainer.environment {type: plugin, function: name}. UserError if the name is
  // taken.
  void add_environment(const std::string& name, train::MakeEpisode make) { train::register_environment(name, make); }
  // A function over rows of data, which preprocessing_fn, format_callback and tokenize_callback name. UserError if the
  // name is taken.
  void add_row_function(const std::string& name, data::RowFunction function) {
    data::register_row_function(name, std::move(function), library_);
  }

 private:
  std::filesystem::path library_;
};

// Loads a plug-in's library; once is enough. Before a run is read and before a model is opened. UserError "file: ...":
// no such file, not a library, not a plug-in, built against another version, or what its easydel_plugin throws.
void load_plugin(const std::filesystem::path& file);

}  // namespace easydel::elarge
