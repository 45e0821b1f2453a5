// The action `serve`: listens, loads the model, and answers until a signal ends it.
#include <algorithm>
#include <memory>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/elarge/actions.h"
#include "easydel/elarge/adapter_config.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/engine_followers.h"
#include "easydel/elarge/engine_mesh.h"
#include "easydel/elarge/other_models.h"
#include "easydel/elarge/served_name.h"
#include "easydel/hub/resolve.h"
#include "easydel/models/lora_config.h"
#include "easydel/server/serve_config.h"
#include "easydel/server/server.h"
#include "easydel/weights/folder.h"
#include "easydel/weights/safetensors.h"

namespace easydel::elarge {

namespace {

// The keys of the action as the run's document has them now. Overrides of the command line do not count.
server::ServeConfig read_again(const Run& run, const Action& action) {
  config::Problems problems(run.file);
  const std::vector<Action> actions =
      read_document(run.reread ? run.reread() : parse_file(run.file), {}, problems).actions;
  problems.throw_if_any();
  const auto at = std::ranges::find(actions, action.path, &Action::path);
  if (at == actions.end() || at->entry != action.entry)
    refuse(action.path, "is no longer the action serve", "put it back, or restart the server");
  return *static_cast<const server::ServeConfig*>(at->parameters.get());
}

// A session for each of the other models, with its weights in memory. On every rank.
std::vector<std::unique_ptr<Session>> open_others(Running& running, const Action& action) {
  const Run& run = running.run;
  const auto& config = *static_cast<const server::ServeConfig*>(action.parameters.get());
  config::Problems problems(run.file);
  const std::vector<OtherModel> models = other_models(run.config, config.models, action.path + ".models", problems);
  problems.throw_if_any();
  std::vector<std::unique_ptr<Session>> out;
  for (const OtherModel& model : models) {
    out.push_back(running.session().open_beside(model.config));
    out.back()->prepare_engine();
  }
  return out;
}

// On a rank other than the first. Engines are joined in the order in which that one makes them.
void follow(Running& running, const Action& action) {
  const std::vector<std::unique_ptr<Session>> others = open_others(running, action);
  EngineFollowers engines;
  engines.add(running.session().join_engine());
  for (const auto& other : others) engines.add(other->join_engine());
  engines.wait();
}

// What it refuses of the ranks of a model besides the run's own, if the model has that key; otherwise the run says it.
void check_ranks_of(const OtherModel& model, const std::string& path, int64_t ranks, config::Problems& problems) {
  config::Problems found("");
  check_engine_ranks(model.config, ranks, found);
  for (const config::Problem& problem : found.sorted())
    if (const std::string own = path + "." + problem.path; problems.given(own))
      problems.add(own, problem.what, problem.remedy);
}

// Adapters of another model have other shapes. Weights of other formats, and those that are not there yet, are compared
// when they are loaded.
void check_shapes(const Config& config, const NamedAdapter& adapter) {
  const std::filesystem::path named = hub::resolve_model(config.model.name_or_path, "model.name_or_path",
                                                         config.model.revision, hub::ModelFiles::description);
  const std::filesystem::path base = models::find_base(named, "model.name_or_path", hub::ModelFiles::description).model;
  const std::filesystem::path file = adapter.folder / models::adapter_weights_name;
  if (!weights::Folder::has_weights(base) || !files::is_file(file)) return;
  const std::shared_ptr<const weights::SafetensorsFile> own = weights::SafetensorsFile::open(file);
  const weights::Folder model = weights::Folder::open(base);
  constexpr std::string_view before = "base_model.model.", after = ".lora_A.weight";
  for (const std::string& name : own->names()) {
    if (!name.starts_with(before) || !name.ends_with(after)) continue;
    const std::string layer = name.substr(before.size(), name.size() - before.size() - after.size());
    const std::string up = str(before, layer, ".lora_B.weight"), changed = layer + ".weight";
    if (!own->has(up) || !model.has(changed)) continue;
    const std::vector<int64_t> shape = model.info(changed).shape;
    if (shape.size() != 2 || own->info(name).shape.size() != 2 || own->info(up).shape.size() != 2) continue;
    const int64_t outputs = own->info(up).shape[0], inputs = own->info(name).shape[1];
    const bool fits = outputs == shape[0] && inputs == shape[1];
    const bool fits_transposed = outputs == shape[1] && inputs == shape[0];  // as some models store their weights
    if (!fits && !fits_transposed)
      refuse("adapters." + adapter.name,
             str(changed, " of the model is [", shape[0], ", ", shape[1], "], and the adapter is for [", outputs, ", ",
                 inputs, "]"),
             "the adapter was made for another model");
  }
}

void check_adapters(const Config& config, config::Problems& problems) {
  problems.collect("adapters", [&] {
    for (const NamedAdapter& adapter : named_adapters(config))
      if (!adapter.sum) problems.collect("adapters." + adapter.name, [&] { check_shapes(config, adapter); });
  });
}

}  // namespace

void run_serve(Running& running, const Action& action) {
  if (!running.leads()) return follow(running, action);
  server::Server server(*static_cast<const server::ServeConfig*>(action.parameters.get()));
  server.start();
  running.print(str("listening on ", server.address(), "\n"));
  const Run& run = running.run;
  const std::vector<std::unique_ptr<Session>> others = open_others(running, action);
  // All weights are in memory before the first engine asks how much is free.
  const double memory_share = 1 / double(1 + others.size());
  server.add(running.session().build_served_model(memory_share));
  for (const auto& other : others) server.add(other->build_served_model(memory_share));
  if (run.reread || files::is_file(run.file)) server.reload_from([&run, &action] { return read_again(run, action); });
  server.set_ready();
  server.run_until_signal();
}

void check_serve(const Run& run, const Action& action, config::Problems& problems) {
  const auto& config = *static_cast<const server::ServeConfig*>(action.parameters.get());
  const auto check_parser = [&](const std::optional<std::string>& parser, const std::string& esurge) {
    if (parser && config.tool_parser_name != "auto" && config.tool_parser_name != *parser)
      problems.add(action.path + ".tool_parser_name",
                   str("is '", config.tool_parser_name, "', but ", esurge, ".tool_parser is '", *parser, "'"),
                   "give one of them");
  };
  check_parser(run.config.esurge.tool_parser, "esurge");
  check_adapters(run.config, problems);
  const std::string models = action.path + ".models";
  for (const OtherModel& model : other_models(run.config, config.models, models, problems)) {
    const std::string path = models + "." + model.name;
    if (model.name == served_name(run.config))
      problems.add(path, "is the name of the run's own model", "give it another name, or set esurge.esurge_name");
    if (model.config.esurge.tool_parser != run.config.esurge.tool_parser)
      check_parser(model.config.esurge.tool_parser, path + ".esurge");
    check_ranks_of(model, path, run.ranks, problems);
    if (!problems.any_at(path)) check_served_model(model.config, path, problems);
  }
  if (config.adapters_dir && !files::is_folder(*config.adapters_dir))
    problems.add(action.path + ".adapters_dir", "'" + *config.adapters_dir + "' is not a folder",
                 "make it, or leave the key out");
  if (config.weights_dir && !files::is_folder(*config.weights_dir))
    problems.add(action.path + ".weights_dir", "'" + *config.weights_dir + "' is not a folder",
                 "make it, or leave the key out");
  check_engine_ranks(run.config, run.ranks, problems);
}

}  // namespace easydel::elarge
