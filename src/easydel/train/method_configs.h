// The training methods, the keys that each has in addition to the common ones, and the facts that each states. A face:
// no torch, so that a run can be validated without it. methods.cpp has the methods themselves.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"
#include "easydel/train/rollout_keys_config.h"
#include "easydel/train/trainer_config.h"
#include "easydel/train/trainer_python_config.h"

namespace easydel::train {

struct MethodConfig {
  std::string_view name;                              // the YAML word and the file's name
  const config::Section& (*section)();                // its own keys
  std::shared_ptr<void> (*make)();                    // a struct of theirs with the defaults
  void (*defaults)(TrainerConfig& common) = nullptr;  // sets common keys that have another default
  MethodFacts facts = {};
  DataKeys (*data_keys)(const void* own) = nullptr;  // null: its keys say nothing of the data
  // Whether its keys ask for a reference; null: it has one, if the facts name one.
  bool (*has_reference)(const void* own) = nullptr;
  const RolloutKeys* (*rollouts)(const void* own) = nullptr;  // null: it does not judge completions of its own
  // Whether its own keys judge completions, so that trainer.rewards may be empty; null: they do not.
  bool (*judges_itself)(const void* own) = nullptr;
  // UserError if its own keys do not fit the models; null: they fit any.
  void (*check_sizes)(const void* own, const ModelSizes& model, const ModelSizes* teacher) = nullptr;
  // Names of its own keys that shape no examples (method_facts.h); null: all may.
  std::vector<std::string_view> (*keys_after_examples)() = nullptr;
};

// The row of a method whose keys are `Config`.
template <class Config>
constexpr MethodConfig method_config(std::string_view name, void (*defaults)(TrainerConfig&) = nullptr) {
  MethodConfig out{.name = name,
                   .section = config::section_of<Config>,
                   .make = []() -> std::shared_ptr<void> { return std::make_shared<Config>(); },
                   .defaults = defaults};
  if constexpr (requires { Config::facts; }) out.facts = Config::facts;
  if constexpr (requires(const Config& keys) { keys.data_keys(); })
    out.data_keys = [](const void* own) { return static_cast<const Config*>(own)->data_keys(); };
  if constexpr (requires(const Config& keys) { keys.has_reference(); })
    out.has_reference = [](const void* own) { return static_cast<const Config*>(own)->has_reference(); };
  if constexpr (requires(const Config& keys) { keys.rollouts.rewards; })
    out.rollouts = [](const void* own) { return &static_cast<const Config*>(own)->rollouts; };
  if constexpr (requires(const Config& keys) { keys.judges_itself(); })
    out.judges_itself = [](const void* own) { return static_cast<const Config*>(own)->judges_itself(); };
  if constexpr (requires(const Config& keys) { keys.check_sizes(ModelSizes(), nullptr); })
    out.check_sizes = [](const void* own, const ModelSizes& model, const ModelSizes* teacher) {
      static_cast<const Config*>(own)->check_sizes(model, teacher);
    };
  if constexpr (requires { Config::keys_after_examples(); }) out.keys_after_examples = Config::keys_after_examples;
  return out;
}

std::span<const MethodConfig> method_configs();                         // in alphabetical order
const MethodConfig* find_method_config(std::string_view trainer_type);  // nullptr: none; '-' and '_' are the same
// The trainer_type that another tool calls `word`: pt and pretrain are sft, rm is reward; any other word is itself.
std::string_view our_word(std::string_view word);
// One more, from the plug-in `library`; empty: from a program that uses this one as a library. method_configs() has it
// from now on, and spans and pointers of before are stale: call it before a run is read. UserError if the name is
// taken.
void register_method_config(const MethodConfig& method, const std::filesystem::path& library = {});
// The plug-in that has the method; empty: it is one of the program's own.
std::filesystem::path library_of_method(std::string_view name);

// `trainer:` as it is read: the common keys and the chosen method's own. Keys of other methods are accepted with a note
// that they have no effect; so one file can hold the settings of several methods.
struct TrainerSection {
  TrainerConfig common;
  TrainerPythonConfig python;
  std::shared_ptr<const void> own;  // the struct of method()

  TrainerSection();  // sft with its defaults
  static config::Section section();

  const MethodConfig& method() const;
  const MethodFacts& facts() const { return method().facts; }
  DataKeys data_keys() const;
  const RolloutKeys* rollouts() const;  // null: the method does not judge completions of its own
  bool judges_itself() const;           // the method's own keys do, without trainer.rewards
  // UserError if the method's own keys do not fit the models.
  void check_sizes(const ModelSizes& model, const ModelSizes* teacher) const;
  bool has_reference() const;  // the run compares with a frozen model: reference_model, or the model as it starts
  data::SavedExamples saved_examples() const {
    return {common.trainer_type, facts().saves, !facts().token_loss || common.loss().shift_tokens};
  }

  // The method's own keys, by their type.
  template <class Config>
  const Config& own_as() const {
    check(own && method().section == config::section_of<Config>, "the keys of ", common.trainer_type,
          " read as those of another method");
    return *static_cast<const Config*>(own.get());
  }
  // Makes it the method whose keys are `keys`; common keys stay.
  template <class Config>
  void use(std::shared_ptr<const Config> keys) {
    set_own(config::section_of<Config>, std::move(keys));
  }

 private:
  void set_own(const config::Section& (*section)(), std::shared_ptr<const void> keys);
};

}  // namespace easydel::train
