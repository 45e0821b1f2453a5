// `easydel serve MODEL`: the action `serve` of a run that is given by flags and environment variables.
#include <algorithm>
#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/json_text.h"
#include "easydel/base/log.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/model_session.h"
#include "easydel/elarge/actions.h"
#include "easydel/elarge/overrides.h"
#include "easydel/server/serve_config.h"

namespace easydel::cli {
namespace {

std::string in_capitals(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return name;
}

// The keys of the action, by flag or else by environment variable, and where each came from. A command is for this
// machine unless it says otherwise.
Value keys_of(const ServeOptions& options, std::vector<std::pair<std::string, std::string>>& sources) {
  Value out = Value::map();
  out.set("host", Value::text("127.0.0.1"));
  const auto set = [&](const std::string& key, const std::string& text, const std::string& source) {
    Value value = parse_yaml(text, source);
    value.place = {};
    out.set(key, std::move(value));
    sources.emplace_back("actions[0].serve." + key, str(source, " ", text));
  };
  for (const config::Key& key : config::section_of<server::ServeConfig>().keys) {
    const std::string variable = "EASYDEL_SERVE_" + in_capitals(key.name);
    if (const char* const value = std::getenv(variable.c_str())) set(key.name, value, variable);
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
Value take_models(ServeOptions& options, std::vector<std::string>& set) {
  if (options.models.empty()) refuse("MODEL", "is missing", "easydel serve MODEL, or --model NAME=DIR once or more");
  Value others = Value::map();
  for (const std::string& text : options.models) {
    const NamedModel model = named_model(text);
    const bool several = options.models.size() > 1;
    if (model.folder.empty() || (several && model.name.empty()))
      refuse("--model", "'" + text + "' is not NAME=DIR", "--model small=models/small --model large=models/large");
    const bool first = &text == &options.models.front();
    if (first) options.model = model.folder;
    if (first && !model.name.empty()) set.push_back("esurge.esurge_name=" + json_text(model.name));
    if (first) continue;
    if (others.find(model.name))
      refuse("--model", "'" + model.name + "' is given twice", "give each model another name");
    others.set(model.name, Value::text(model.folder));
  }
  return others;
}

}  // namespace

int run_serve(ServeOptions options) {
  std::vector<std::string> set = options.set;
  const Value others = take_models(options, set);
  Value document = model_document(options), actions = Value::list(), serve = Value::map();
  if (!options.chat_template.empty()) document.find("model")->set("chat_template", Value::text(options.chat_template));
  std::vector<std::pair<std::string, std::string>> sources;
  Value keys = keys_of(options, sources);
  if (!others.entries.empty()) keys.set("models", others);
  serve.set("serve", std::move(keys));
  actions.items.push_back(std::move(serve));
  document.set("actions", std::move(actions));
  const elarge::Run run = elarge::checked_run(document, "easydel serve", elarge::overrides_of(set), 1, sources);
  for (const std::string& note : run.notes) log::warning(note);
  elarge::run_actions(run, print);
  return 0;
}

}  // namespace easydel::cli
