// `easydel serve MODEL`: the action `serve` of a run that is given by flags and environment variables.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/json_text.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/model_session.h"
#include "easydel/elarge/actions.h"
#include "easydel/elarge/overrides.h"
#include "easydel/mesh/world.h"
#include "easydel/server/serve_config.h"

namespace easydel::cli {
namespace {

std::string in_capitals(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return name;
}

const std::string prefix = "EASYDEL_SERVE_", models_prefix = "models.";

// A variable for the server that it does not know: a slip here could leave it without its keys.
void check_variable(const Where& where, const std::string& name) {
  std::vector<std::string> known;
  for (const config::Key& key : config::section_of<server::ServeConfig>().keys)
    known.push_back(prefix + in_capitals(key.name));
  if (std::ranges::find(known, name) == known.end())
    refuse(where, "'" + name + "' is not a key of the server", did_you_mean(name, known));
}

void check_environment() {
  for (char** at = environ; *at; ++at) {
    const std::string_view line = *at;
    if (line.starts_with(prefix)) check_variable("environment", std::string(line.substr(0, line.find('='))));
  }
}

// Lines NAME=VALUE; other programs' names may be among them. Empty lines and those with # are comments.
std::map<std::string, std::string> read_env_file(const std::string& file) {
  std::map<std::string, std::string> out;
  if (file.empty()) return out;
  std::istringstream lines(files::read(file));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.erase(line.find_last_not_of(" \t\r") + 1);
    line.erase(0, line.find_first_not_of(" \t"));
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('=');
    const FilePlace place{file, number};
    if (equals == std::string::npos || equals == 0)
      refuse(place, "'" + line + "' is not NAME=VALUE", "EASYDEL_SERVE_PORT=8000");
    const std::string name = line.substr(0, equals);
    std::string value = line.substr(equals + 1);
    const bool quoted = value.size() > 1 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
    if (quoted) value = value.substr(1, value.size() - 2);
    if (!name.starts_with(prefix)) continue;
    check_variable(place, name);
    out[name] = value;
  }
  return out;
}

// What gave a key its value: its path in the run, and the flag or variable.
using Sources = std::vector<std::pair<std::string, std::string>>;

const std::string action_path = "actions[0].serve.";

// The keys of the action, by flag, else by environment variable, else by a line of --env-file, and where each came
// from. A command is for this machine unless it says otherwise.
Value keys_of(const ServeOptions& options, Sources& sources) {
  Value out = Value::map();
  out.set("host", Value::text("127.0.0.1"));
  const auto set = [&](const std::string& key, const std::string& text, const std::string& source) {
    Value value = parse_yaml(text, source);
    value.place = {};
    out.set(key, std::move(value));
    sources.emplace_back(action_path + key, str(source, " ", text));
  };
  check_environment();
  const std::map<std::string, std::string> lines = read_env_file(options.env_file);
  for (const config::Key& key : config::section_of<server::ServeConfig>().keys) {
    const std::string variable = prefix + in_capitals(key.name);
    const auto line = lines.find(variable);
    if (const char* const value = std::getenv(variable.c_str()))
      set(key.name, value, variable);
    else if (line != lines.end())
      set(key.name, line->second, options.env_file + ": " + variable);
  }
  for (const auto& [key, text] : options.keys) {
    std::string flag = "--" + key;
    std::ranges::replace(flag, '_', '-');
    set(key, text, flag);
  }
  return out;
}

struct NamedModel {
  std::string name, folder;  // name: empty if it has none of its own
};

// "tiny=models/tiny". The name of a folder may have a '='.
NamedModel named_model(const std::string& text) {
  const size_t at = files::exists(text) ? std::string::npos : text.find('=');
  if (at == std::string::npos) return {"", text};
  return {text.substr(0, at), text.substr(at + 1)};
}

// The first model is the run's own; the others are keys of the action.
Value take_models(ServeOptions& options) {
  if (options.models.empty()) refuse("MODEL", "is missing", "easydel serve MODEL, or --model NAME=DIR once or more");
  Value others = Value::map();
  for (const std::string& text : options.models) {
    const NamedModel model = named_model(text);
    const bool several = options.models.size() > 1;
    if (model.folder.empty() || (several && model.name.empty()))
      refuse("--model", "'" + text + "' is not NAME=DIR", "--model small=models/small --model large=models/large");
    const bool first = &text == &options.models.front();
    if (first) options.model = model.folder;
    if (first && !model.name.empty()) options.set.push_back("esurge.esurge_name=" + json_text(model.name));
    if (first) continue;
    if (others.find(model.name))
      refuse("--model", "'" + model.name + "' is given twice", "give each model another name");
    others.set(model.name, Value::text(model.folder));
  }
  return others;
}

// "--set models.large.esurge.max_num_seqs=8": puts it into the sections of that model. Names may have dots.
void set_of_model(const elarge::Override& given, Value& others, const std::string& first, Sources& sources) {
  const std::string flag = "--set " + given.path + "=" + given.value;
  const std::string rest = given.path.substr(models_prefix.size());
  const auto is_named = [&rest](const std::string& name) { return !name.empty() && rest.starts_with(name + "."); };
  if (is_named(first))
    refuse(flag, "'" + first + "' is the first model, whose settings are those of the command",
           "--set " + rest.substr(first.size() + 1) + "=" + given.value);
  const auto model = std::ranges::find_if(others.entries, [&](const auto& entry) { return is_named(entry.first); });
  if (model == others.entries.end())
    refuse(flag, "names no model of --model", "--model NAME=DIR --set models.NAME.KEY=VALUE");
  if (!model->second.is_map()) {
    Value section = Value::map(), sections = Value::map();
    section.set("name_or_path", model->second);
    sections.set("model", std::move(section));
    model->second = std::move(sections);
  }
  Value* at = &model->second;
  std::string path = rest.substr(model->first.size() + 1);
  for (size_t dot; (dot = path.find('.')) != std::string::npos; path.erase(0, dot + 1)) {
    const std::string name = path.substr(0, dot);
    if (!at->find(name)) at->set(name, Value::map());
    at = at->find(name);
    if (!at->is_map()) refuse(flag, "'" + name + "' is not a section, so it cannot contain keys");
  }
  Value value = parse_yaml(given.value, flag);
  value.place = {};
  at->set(path, std::move(value));
  sources.emplace_back(action_path + given.path, flag);
}

}  // namespace

int run_serve(ServeOptions options) {
  Value others = take_models(options);
  const std::string first = named_model(options.models.front()).name;
  std::vector<elarge::Override> overrides = elarge::overrides_of(options.set);
  Sources of_models;
  for (const elarge::Override& given : overrides)
    if (given.path.starts_with(models_prefix)) set_of_model(given, others, first, of_models);
  std::erase_if(overrides, [](const elarge::Override& given) { return given.path.starts_with(models_prefix); });
  Value document = model_document(options);
  if (!options.chat_template.empty()) document.find("model")->set("chat_template", Value::text(options.chat_template));
  const auto with_keys = [options, document, others](Sources& sources) {
    Value out = document, actions = Value::list(), serve = Value::map(), keys = keys_of(options, sources);
    if (!others.entries.empty()) keys.set("models", others);
    serve.set("serve", std::move(keys));
    actions.items.push_back(std::move(serve));
    out.set("actions", std::move(actions));
    return out;
  };
  Sources sources = std::move(of_models);
  const Value all = with_keys(sources);
  std::vector<std::string> own = options.set;
  std::erase_if(own, [](const std::string& given) { return given.starts_with(models_prefix); });
  join_hosts(document, own);
  const mesh::World world = mesh::read_world();
  elarge::Run run = elarge::checked_run(all, "easydel serve", overrides, world.size, sources);
  if (!options.env_file.empty())
    run.reread = [with_keys] {
      Sources again;
      return with_keys(again);
    };
  const bool leader = world.rank == 0;
  if (leader)
    for (const std::string& note : run.notes) log::warning(note);
  elarge::run_actions(run, leader ? elarge::Output(print) : elarge::Output());
  return 0;
}

}  // namespace easydel::cli
