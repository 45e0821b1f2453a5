// Checks of a run before it begins, without torch: the model's and the data's files, where results will be written, and
// whether batch and mesh fit the number of ranks.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/data/inform_files.h"
#include "easydel/data/save_dataset.h"
#include "easydel/elarge/actions.h"
#include "easydel/elarge/adapter_config.h"
#include "easydel/elarge/benchmarks.h"
#include "easydel/elarge/engine_mesh.h"
#include "easydel/elarge/overridden_key.h"
#include "easydel/elarge/push.h"
#include "easydel/elarge/reward_checks.h"
#include "easydel/generation/generation_config.h"
#include "easydel/hub/resolve.h"
#include "easydel/mesh/built_axes.h"
#include "easydel/mesh/mesh.h"
#include "easydel/mesh/world.h"
#include "easydel/models/family_configs.h"
#include "easydel/models/parts_config.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/weights/folder.h"

namespace easydel::elarge {
namespace {

namespace fs = std::filesystem;

// The folder of a model with a config.json in it; empty, with a problem added, if there is none.
fs::path find_model(const ModelConfig& model, const std::string& path, config::Problems& problems) {
  fs::path folder;
  problems.collect(path + ".name_or_path", [&] {
    const fs::path named =
        hub::resolve_model(model.name_or_path, path + ".name_or_path", model.revision, hub::ModelFiles::description);
    const fs::path found = models::find_base(named, path + ".name_or_path", hub::ModelFiles::description).model;
    if (!weights::has_config(found))
      refuse(path + ".name_or_path", "'" + model.name_or_path + "' has no config.json",
             "give a Hugging Face model folder");
    folder = found;
  });
  return folder;
}

// Checks config.json and the weights' headers. Returns config.json, or null if it cannot be read.
Value check_model(const fs::path& folder, const Value& overrides, const std::string& path, config::Problems& problems) {
  Value config;
  problems.collect(path + ".name_or_path", [&] {
    weights::ConfigFile read = weights::read_config(folder);
    read.document = models::part_config(read.document, read.where, models::PartRole::text);
    config = read.document;
    for (const auto& [key, value] : overrides.entries) read.document.set(key, value);
    try {
      models::family_config_of(read.document, read.where);
    } catch (const UserError& error) {
      const auto key = overridden_key(error, overrides);
      if (!key) throw;
      problems.add(key->path, key->place, error.problem, error.remedy);
    }
  });
  problems.collect(path + ".name_or_path", [&] {
    if (weights::Folder::has_weights(folder)) weights::Folder::open(folder);
    // a link into a cache: weights are downloaded when they are loaded
    else if (!files::is_link(folder / "config.json"))
      problems.note(path + ".name_or_path",
                    "'" + folder.string() + "' has no *.safetensors: the model starts from random weights");
  });
  return config;
}

void check_overrides(const BaseValues& values, const Value& model_config, config::Problems& problems) {
  std::vector<std::string> known;
  for (const config::Key& key : config::section_of<BaseValues>().keys) known.push_back(key.name);
  for (const auto& [name, value] : model_config.entries) known.push_back(name);
  known.insert(known.end(), models::common_keys().begin(), models::common_keys().end());
  for (const auto& [name, value] : values.config_json.entries) {
    if (model_config.find(name) || std::ranges::find(models::common_keys(), name) != models::common_keys().end())
      continue;
    const std::string near = nearest(name, known);
    problems.add("base_config.values." + name, value.place,
                 "no such key: neither EasyDeL nor the model's config.json has it",
                 near.empty() ? "the keys of this model are in its config.json" : "did you mean '" + near + "'?");
  }
}

// Checks run after reading; each is skipped if the values it depends on have problems already.
bool wrong(const config::Problems& problems, std::initializer_list<std::string_view> paths) {
  return std::ranges::any_of(paths, [&](std::string_view path) { return problems.any_at(path); });
}

void check_models(const Config& config, bool with_tokenizer, config::Problems& problems) {
  const Value& overrides = config.base_config.values.config_json;
  const fs::path folder = find_model(config.model, "model", problems);
  const Value model = folder.empty() ? Value{} : check_model(folder, overrides, "model", problems);
  if (model.is_map()) check_overrides(config.base_config.values, model, problems);
  if (with_tokenizer && config.model.tokenizer)
    problems.collect("model.tokenizer", [&] {
      text::Tokenizer::load(
          hub::resolve_model(*config.model.tokenizer, "model.tokenizer", "main", hub::ModelFiles::description));
    });
  else if (with_tokenizer && model.is_map())  // a tokenizer reads config.json too
    problems.collect("model.name_or_path", [&] { text::Tokenizer::load(folder); });
  problems.collect("model.chat_template", [&] { read_chat_template(config.model, "model"); });
  const auto check_side = [&](const std::optional<ModelConfig>& side, const std::string& section) {
    if (!side) return;
    problems.collect(section + ".chat_template", [&] { read_chat_template(*side, section); });
    const fs::path own = find_model(*side, section, problems);
    if (!own.empty()) check_model(own, overrides, section, problems);
  };
  const train::MethodFacts& facts = config.trainer.facts();
  check_side(config.reference_model, "reference_model");
  if (facts.teacher != train::SideModelUse::none) check_side(config.teacher_model, "teacher_model");
  if (facts.reward != train::SideModelUse::none) check_side(config.reward_model, "reward_model");
}

}  // namespace

void check_served_model(const Config& config, const std::string& path, config::Problems& problems) {
  config::Problems own("");
  const fs::path folder = find_model(config.model, "model", own);
  if (!folder.empty()) check_model(folder, config.base_config.values.config_json, "model", own);
  for (const config::Problem& problem : own.sorted()) problems.add(path, problem.what, problem.remedy);
  problems.collect(path, [&] { read_chat_template(config.model, "model"); });
  if (folder.empty() || !own.empty()) return;
  problems.collect(path, [&] {
    const std::optional<std::string>& tokenizer = config.model.tokenizer;
    text::Tokenizer::load(
        tokenizer ? hub::resolve_model(*tokenizer, "model.tokenizer", "main", hub::ModelFiles::description) : folder);
  });
}

namespace {

// Sections of models that the method does not use, and sections that it requires.
void check_side_models(const Config& config, config::Problems& problems) {
  struct Role {
    const char* section;
    const std::optional<ModelConfig>& given;
    train::SideModelUse train::MethodFacts::*use;
  };
  const std::array roles{Role{"reference_model", config.reference_model, &train::MethodFacts::reference},
                         Role{"teacher_model", config.teacher_model, &train::MethodFacts::teacher},
                         Role{"reward_model", config.reward_model, &train::MethodFacts::reward}};
  using enum train::SideModelUse;
  const std::string& method = config.trainer.common.trainer_type;
  for (const Role& role : roles) {
    const train::SideModelUse use = config.trainer.facts().*role.use;
    if (!role.given && use == required)
      problems.add(role.section, str("is missing: trainer_type ", method, " needs it"), "give its name_or_path");
    if (!role.given || use != none) continue;
    problems.no_effect(role.section, "with trainer_type " + method);
  }
}

void check_data(const Config& config, config::Problems& problems) {
  if (wrong(problems, {"mixture"})) return;
  const auto check_informs = [&](const std::vector<data::InformConfig>& informs, const std::string& key) {
    for (size_t i = 0; i < informs.size(); ++i) {
      const std::string path =
          str("mixture.", key, "[", i, data::is_hub_dataset(informs[i]) ? "].type" : "].data_files");
      problems.collect(path, [&] {
        for (const fs::path& file : data::files_of(informs[i], data::remote_options(config.mixture), path))
          if (::access(file.c_str(), R_OK) != 0) refuse(path, file.string() + " cannot be read");
      });
    }
  };
  check_informs(config.mixture.informs, "informs");
  check_informs(config.mixture.evaluation, "evaluation");
  if (config.mixture.save)
    problems.collect("mixture.save",
                     [&] { data::check_save("mixture.save", *config.mixture.save, config.trainer.saved_examples()); });
}

// Held-out data are asked for by keys that have no meaning without them.
void check_evaluation(const Config& config, config::Problems& problems) {
  if (wrong(problems, {"mixture", "trainer"}) || !data::evaluation_informs(config.mixture).empty()) return;
  const train::TrainerConfig& trainer = config.trainer.common;
  const auto refuse_key = [&](bool used, const std::string& key, const char* problem) {
    if (used) problems.add("trainer." + key, problem, "give mixture.evaluation, or an inform with split: validation");
  };
  const char* const needs = "needs evaluations, and there is no evaluation data";
  refuse_key(trainer.early_stopping_patience.has_value(), "early_stopping_patience", needs);
  refuse_key(trainer.load_best_model_at_end, "load_best_model_at_end", needs);
  refuse_key(trainer.scheduler == train::Scheduler::reduce_on_plateau, "scheduler", needs);
  refuse_key(trainer.do_eval && problems.given("trainer.do_eval"), "do_eval", "there is no evaluation data");
}

// Checks that `path` can be created or written: there is no file in the way, and the first existing folder above it is
// writable.
void check_can_write(const fs::path& path, bool folder, const std::string& key, config::Problems& problems) {
  if (problems.any_at(key)) return;
  if (files::exists(path)) {
    if (files::is_folder(path) != folder)
      return problems.add(key, "'" + path.string() + "' is a " + (folder ? "file, not a folder" : "folder, not a file"),
                          "choose another name");
    if (::access(path.c_str(), W_OK) != 0)
      problems.add(key, "'" + path.string() + "' cannot be written",
                   "choose a path that you may use, or change its permissions");
    return;
  }
  fs::path above = files::absolute(path).parent_path();
  while (!files::exists(above) && above.has_relative_path()) {
    if (!folder)
      return problems.add(key, "'" + path.string() + "': there is no folder " + path.parent_path().string(),
                          "create it, or choose another path");
    above = above.parent_path();
  }
  if (!files::is_folder(above))
    return problems.add(key, "'" + path.string() + "' cannot be made: " + above.string() + " is a file",
                        "choose another path");
  if (::access(above.c_str(), W_OK | X_OK) != 0)
    problems.add(key, "'" + path.string() + "' cannot be made: " + above.string() + " is not writable",
                 "choose a path that you may use, or change its permissions");
}

void check_ranks(const Config& config, int64_t ranks, bool training, config::Problems& problems) {
  if (wrong(problems,
            {"sharding", "trainer.total_batch_size", "trainer.gradient_accumulation_steps", "mixture.batch_size"}))
    return;
  problems.collect("sharding.axis_dims", [&] {
    const mesh::World world = mesh::read_world();
    const mesh::Mesh mesh = config.sharding.mesh(ranks, world.size == ranks ? world.size / world.local_size : 1);
    mesh::check_built_axes(mesh);
    if (!training) return;
    problems.collect("trainer.total_batch_size",
                     [&] { train::check_update_divides(config.trainer.common, mesh.size(mesh::batch_axes())); });
  });
}

}  // namespace

void check_built(const Config& config, bool training, config::Problems& problems) {
  problems.collect("quantization", [&] { config.quantization.weight_format(); });
  problems.collect(config.quantization.kv_cache ? "quantization.kv_cache" : "base_config.values.kvdtype",
                   [&] { config.quantization.cache_format(config.base_config.values.kvdtype); });
  if (config.sharding.axis_names != mesh::default_axes())
    problems.add("sharding.axis_names", "axes other than " + join(mesh::default_axes(), ", ") + " are not built yet",
                 "keep these names in this order");
  if (config.lora && config.lora->adapter) problems.collect("lora.adapter", [&] { adapter_of(config, training); });
  if (training && config.trainer.common.quantization_mode &&
      (config.lora || (!wrong(problems, {"quantization"}) && config.quantization.weight_format())))
    problems.collect("trainer.quantization_mode", refuse_codes_beside_adapter);
}

namespace {

void check_task_folder(const EvalConfig& settings, const std::string& section, config::Problems& problems) {
  if (settings.include_path && !files::is_folder(*settings.include_path))
    problems.add(section + ".include_path", "there is no folder '" + *settings.include_path + "'",
                 "give the folder with the tasks' YAML files");
}

void check_benchmarks(const Config& config, config::Problems& problems) {
  for (const BenchmarkPlan& benchmark : benchmark_plans(config, problems))
    check_task_folder(benchmark.plan.settings, benchmark.plan.where, problems);
}

}  // namespace

void check_needs(const Run& run, config::Problems& problems) {
  const Config& config = run.config;
  const Needs needs = needs_of(run);
  if (needs.model && !wrong(problems, {"model", "reference_model", "teacher_model", "reward_model"}))
    check_models(config, needs.tokenizer, problems);
  if (needs.data) check_data(config, problems);
  if (needs.computing) check_built(config, needs.training, problems);
  if (needs.training) {
    check_side_models(config, problems);
    if (!wrong(problems, {"mixture"}) && data::training_informs(config.mixture).empty())
      problems.add("mixture.informs", "there is no training data", "give at least one inform with data_files");
  }
  if (needs.training) check_evaluation(config, problems), check_rewards(config, problems);
  if (needs.training && config.trainer.common.push_to_hub) {
    if (!config.trainer.common.hub_model_id)
      problems.add("trainer.push_to_hub", "needs the name of a repository", "give hub_model_id: owner/name");
    else
      problems.collect("trainer.push_to_hub",
                       [&] { hub::check_push("trainer.push_to_hub", push_options(config.trainer.common)); });
  }
  if (needs.training || problems.given("trainer.benchmarks")) check_benchmarks(config, problems);
  // If a run only validates, training's keys are checked only if they were given.
  if (needs.training || (needs.data && problems.given("trainer.save_directory")))
    check_can_write(hub::expand_home(config.trainer.common.save_directory), true, "trainer.save_directory", problems);
  if (needs.model)
    check_ranks(config, run.ranks, needs.training || problems.given("trainer.total_batch_size"), problems);
}

void refuse_without_weights(const Run& run, const Action& reader, bool complete) {
  for (const Action& action : run.actions) {
    if (&action == &reader) break;
    if (action.entry->needs.training) return;
  }
  const fs::path folder =
      hub::resolve_model(run.config.model.name_or_path, "model.name_or_path", run.config.model.revision,
                         complete ? hub::ModelFiles::all : hub::ModelFiles::description);
  if (weights::Folder::has_weights(folder)) return;
  // a link into a cache: weights are downloaded when they are loaded
  if (!complete && files::is_link(folder / "config.json")) return;
  const bool generates = reader.entry->check == check_generate;
  refuse(reader.path, "'" + folder.string() + "' has no weights (model.safetensors)",
         std::string("give the folder of a trained model, or train before") +
             (generates ? "; random_weights: true generates with random values" : ""));
}

namespace {

void check_adapter_names(const Config& config, const GenerateConfig& action, const std::string& path,
                         config::Problems& problems) {
  const size_t names = action.adapter.size(), prompts = action.prompts.size();
  if (names > 1 && names != prompts)
    problems.add(path + ".adapter", str("names ", names, " adapters for ", counted(int64_t(prompts), "prompt")),
                 "give one for all prompts, or one for each");
  std::vector<std::string> known;
  for (const auto& [name, folder] : config.adapters.entries) known.push_back(name);
  for (const std::string& name : action.adapter)
    if (!name.empty() && std::ranges::find(known, name) == known.end())
      problems.add(path + ".adapter", str("no adapter is called '", name, "'"),
                   known.empty() ? "name it and its folder in the section adapters" : "known: " + join(known, ", "));
  if (names > 0) problems.collect("adapters", [&] { named_adapters(config); });
}

}  // namespace

void check_generate(const Run& run, const Action& action, config::Problems& problems) {
  const auto& parameters = *static_cast<const GenerateAction*>(action.parameters.get());
  if (parameters.generate.output_path)
    check_can_write(*parameters.generate.output_path, false, action.path + ".output_path", problems);
  check_adapter_names(run.config, parameters.generate, action.path, problems);
  if (parameters.generate.engine == GenerateEngine::esurge) check_engine_ranks(run.config, run.ranks, problems);
  if (!problems.empty()) return;
  if (!parameters.generate.random_weights)
    problems.collect(action.path, [&] { refuse_without_weights(run, action, false); });
  problems.collect(action.path, [&] {
    const fs::path named = hub::resolve_model(run.config.model.name_or_path, "model.name_or_path",
                                              run.config.model.revision, hub::ModelFiles::description);
    const fs::path folder = models::find_base(named, "model.name_or_path", hub::ModelFiles::description).model;
    check_together(generation::generation_config(folder, parameters.generation), config::Keys(problems, action.path));
  });
}

void check_eval(const Run& run, const Action& action, config::Problems& problems) {
  const auto& parameters = *static_cast<const EvalActionConfig*>(action.parameters.get());
  if (parameters.output_path)
    check_can_write(*parameters.output_path, !parameters.output_path->ends_with(".json"), action.path + ".output_path",
                    problems);
  const EvalConfig& settings = run.config.eval;
  check_task_folder(settings, "eval", problems);
  if (problems.empty()) problems.collect(action.path, [&] { refuse_without_weights(run, action, false); });
  const bool chat =
      !std::holds_alternative<bool>(settings.apply_chat_template) || std::get<bool>(settings.apply_chat_template);
  if (!chat || !problems.empty() || run.config.model.chat_template) return;
  problems.collect("eval.apply_chat_template", [&] {
    const auto tokenizer = text::Tokenizer::load(
        hub::resolve_tokenizer(run.config.model.tokenizer.value_or(run.config.model.name_or_path)));
    if (!tokenizer->chat_template())
      refuse("eval.apply_chat_template", "the tokenizer has no chat template",
             "give model.chat_template, or leave it out");
  });
}

void check_push(const Run&, const Action& action, config::Problems& problems) {
  const auto& parameters = *static_cast<const PushConfig*>(action.parameters.get());
  problems.collect(action.path, [&] { hub::check_push(action.path, push_options(parameters)); });
}

void check_writable(const Run&, const Action& action, config::Problems& problems) {
  check_can_write(static_cast<const PathConfig*>(action.parameters.get())->path, false, action.path + ".path",
                  problems);
}

}  // namespace easydel::elarge
