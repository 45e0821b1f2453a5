// A run: one document with the whole configuration and the actions to run. Reading, checking and writing it does not
// need torch; everything that computes is in elarge/core.h.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/data/mixture_config.h"
#include "easydel/elarge/action_config.h"
#include "easydel/elarge/base_values_config.h"
#include "easydel/elarge/eval_config.h"
#include "easydel/elarge/model_config.h"
#include "easydel/elarge/quantization_config.h"
#include "easydel/elarge/sharding_config.h"
#include "easydel/esurge/esurge_config.h"
#include "easydel/models/lora_config.h"
#include "easydel/train/method_configs.h"

namespace easydel::elarge {

using models::LoraConfig;

struct Config {
  ModelConfig model;
  std::optional<ModelConfig> teacher_model, reference_model, reward_model;
  LoaderConfig loader;
  ShardingConfig sharding;
  PlatformConfig platform;
  QuantizationConfig quantization;
  std::optional<LoraConfig> lora;
  Value adapters;  // {name: folder or sum}
  BaseConfig base_config;
  data::MixtureConfig mixture;
  easydel::esurge::EsurgeConfig esurge;
  train::TrainerSection trainer;
  EvalConfig eval;

  static constexpr auto doc = "A run: the model, the data and the settings.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::model>("The model.", required()),
        field<&C::teacher_model>("Teacher for distillation."),
        field<&C::reference_model>("Reference model of preference methods; null: the initial weights of `model`."),
        field<&C::reward_model>("Model that scores completions."),
        field<&C::loader>("How models are loaded."),
        field<&C::sharding>("How models are sharded over ranks."),
        field<&C::platform>("Device and kernels."),
        field<&C::quantization>("Quantization of the weights and of the KV cache."),
        field<&C::lora>("Low-rank adapters."),
        field<&C::adapters>(
            "Adapters that requests choose by name: {name: folder}, or sums of such, {name: {linear: {a: "
            "0.7, b: 0.3}}} or cat, as in PEFT. generate, chat, esurge and serve read them. All are in "
            "memory, and requests with different ones share a pass."),
        field<&C::base_config>("Keys that replace those of the model's configuration."),
        field<&C::mixture>("The data."),
        field<&C::esurge>("The inference engine."),
        field<&C::trainer>("The training."),
        field<&C::eval>("Benchmark evaluation."),
    };
  }
  void settle(config::Keys& keys);
};

struct ActionEntry;

struct Action {
  const ActionEntry* entry = nullptr;
  std::string path;                        // "actions[1].generate"
  std::shared_ptr<const void> parameters;  // the entry's parameter struct; null: it has no parameters
};

struct Override {
  std::string path;   // "trainer.learning_rate", "mixture.informs[0].num_rows"
  std::string value;  // YAML
};

struct Run {
  std::string file;  // what errors call the document
  Config config;
  std::vector<Action> actions;
  std::vector<std::string> notes;  // for the user; they do not stop the run
  int64_t ranks = 1;               // number of processes of the run
  // The document as it is by now, for an action that reads it again while it runs; null: it is that of `file`, if there
  // is such a file, and cannot change otherwise.
  std::function<Value()> reread = {};
};

// Reads a run and checks everything that can be checked without torch: keys, types, rules over several keys, actions
// and their parameters, files that must exist, folders that must be writable. UserError with all problems at once.
Run read_run(const std::filesystem::path& file, std::span<const Override> overrides = {}, int64_t ranks = 1);

// The same of a document that is called `name` in errors. `sources`: what gave a key its value, if not the document.
Run checked_run(const Value& document, const std::string& name, std::span<const Override> overrides, int64_t ranks,
                std::span<const std::pair<std::string, std::string>> sources = {});

// The part of read_run that checks the document without looking at files.
Run read_document(const Value& document, std::span<const Override> overrides, config::Problems& problems);

// The configuration of a document without wrapper and actions, with the overrides of the command line applied.
Config read_config(Value config, config::Problems& problems, std::span<const Override> overrides = {});

// The actions as a document: names, and parameters with their defaults.
Value normalised(std::span<const Action> actions);

// The configuration as a document: every section with its defaults filled in.
Value normalised(const Config& config);

}  // namespace easydel::elarge
