// The action `serve`: listens, loads the model, and answers until a signal ends it.
#include <algorithm>
#include <memory>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/elarge/actions.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/served_name.h"
#include "easydel/server/serve_config.h"
#include "easydel/server/server.h"

namespace easydel::elarge {

namespace {

// The keys of the action as the run's file has them now. Overrides of the command line do not count.
server::ServeConfig read_again(const Run& run, const Action& action) {
  config::Problems problems(run.file);
  const std::vector<Action> actions = read_document(parse_file(run.file), {}, problems).actions;
  problems.throw_if_any();
  const auto at = std::ranges::find(actions, action.path, &Action::path);
  if (at == actions.end() || at->entry != action.entry)
    refuse(action.path, "is no longer the action serve", "put it back, or restart the server");
  return *static_cast<const server::ServeConfig*>(at->parameters.get());
}

// The run's configuration with another model, without what belongs to its own one.
Config with_model(Config config, const std::string& name, const std::string& name_or_path) {
  config.model = {};
  config.model.name_or_path = name_or_path;
  config.lora = {};
  config.esurge.speculative_model = {};
  config.esurge.esurge_name = name;
  return config;
}

// A session for each of the other models, with its weights in memory.
std::vector<std::shared_ptr<Session>> open_others(const Run& run, const server::ServeConfig& config) {
  std::vector<std::shared_ptr<Session>> out;
  for (const auto& [name, name_or_path] : config.models) {
    out.push_back(core().open(with_model(run.config, name, name_or_path), false));
    out.back()->build_model();
  }
  return out;
}

}  // namespace

void run_serve(Running& running, const Action& action) {
  server::Server server(*static_cast<const server::ServeConfig*>(action.parameters.get()));
  server.start();
  running.print(str("listening on ", server.address(), "\n"));
  const Run& run = running.run;
  const auto& config = *static_cast<const server::ServeConfig*>(action.parameters.get());
  const std::vector<std::shared_ptr<Session>> others = open_others(run, config);
  // All weights are in memory before the first engine asks how much is free.
  const double memory_share = 1 / double(1 + others.size());
  server.add(running.session().build_served_model(memory_share));
  for (const auto& other : others) server.add(other->build_served_model(memory_share));
  if (files::is_file(run.file)) server.reload_from([&run, &action] { return read_again(run, action); });
  server.set_ready();
  server.run_until_signal();
}

void check_serve(const Run& run, const Action& action, config::Problems& problems) {
  const auto& config = *static_cast<const server::ServeConfig*>(action.parameters.get());
  const std::optional<std::string>& parser = run.config.esurge.tool_parser;
  for (const auto& [name, name_or_path] : config.models) {
    const std::string path = str(action.path, ".models.", name);
    if (name == served_name(run.config))
      problems.add(path, "is the name of the run's own model", "give it another name, or set esurge.esurge_name");
    check_served_model(with_model(run.config, name, name_or_path), path, problems);
  }
  if (config.adapters_dir && !files::is_folder(*config.adapters_dir))
    problems.add(action.path + ".adapters_dir", "'" + *config.adapters_dir + "' is not a folder",
                 "make it, or leave the key out");
  if (run.ranks > 1) problems.add(action.path, "serving on several ranks is not built yet", "use one process");
  if (parser && config.tool_parser_name != "auto" && config.tool_parser_name != *parser)
    problems.add(action.path + ".tool_parser_name",
                 str("is '", config.tool_parser_name, "', but esurge.tool_parser is '", *parser, "'"),
                 "give one of them");
}

}  // namespace easydel::elarge
