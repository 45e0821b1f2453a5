#include "easydel/cli/model_session.h"

#include <algorithm>
#include <optional>
#include <random>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/elarge/join_hosts.h"
#include "easydel/elarge/overrides.h"
#include "easydel/hub/resolve.h"
#include "easydel/mesh/world.h"
#include "easydel/weights/folder.h"

namespace easydel::cli {
namespace {

std::atomic<bool> stop_reply = false;

}  // namespace

Value model_document(const ModelOptions& options) {
  Value document = Value::map(), model = Value::map(), loader = Value::map();
  model.set("name_or_path", Value::text(options.model));
  if (!options.tokenizer.empty()) model.set("tokenizer", Value::text(options.tokenizer));
  loader.set("dtype", Value::text(options.dtype));
  loader.set("param_dtype", Value::text(options.dtype));
  loader.set("device", Value::text(options.device));
  loader.set("verbose", Value::boolean(false));
  document.set("model", model);
  document.set("loader", loader);
  if (!options.adapter.empty()) {
    Value lora = Value::map();
    lora.set("adapter", Value::text(options.adapter));
    document.set("lora", lora);
  }
  return document;
}

namespace {

// --adapter may be a name of the section adapters.
elarge::Config session_config(const ModelOptions& options) {
  if (options.adapter.empty()) return elarge::configuration(model_document(options), options.set);
  ModelOptions own = options;
  own.adapter.clear();
  const elarge::Config config = elarge::configuration(model_document(own), options.set);
  const Value* const folder = config.adapters.is_map() ? config.adapters.find(options.adapter) : nullptr;
  if (folder && folder->is_map())
    refuse("--adapter", str("'", options.adapter, "' is a sum of adapters, which is not built yet here"),
           "use the action generate of a run, or merge them: easydel merge");
  own.adapter = folder ? *folder->as_string() : options.adapter;
  elarge::Config out = elarge::configuration(model_document(own), options.set);
  out.adapters = {};  // the adapter is the model's own now, and no other can be loaded beside it
  return out;
}

}  // namespace

void join_hosts(const Value& document, const std::vector<std::string>& set) {
  const std::string key = "distributed_mode";
  const Value* const section = document.is_map() ? document.find("esurge") : nullptr;
  const bool in_file = section && section->is_map() && section->find(key);
  if (!in_file && std::ranges::none_of(set, [&](const std::string& each) { return each.find(key) != each.npos; }))
    return;
  std::optional<elarge::Config> config;
  try {
    config = elarge::configuration(document, set);
  } catch (const UserError&) {
    return;
  }
  elarge::join_hosts(config->esurge);
}

ModelSession open_session(const ModelOptions& options) {
  const elarge::Config config = session_config(options);
  elarge::join_hosts(config.esurge);
  ModelSession out;
  const std::string where = "model.name_or_path";
  out.folder =
      models::find_base(hub::resolve_model(config.model.name_or_path, where, config.model.revision), where).model;
  if (!options.random_weights && weights::has_config(out.folder) && !weights::Folder::has_weights(out.folder))
    refuse(out.folder.string(), "has no weights (model.safetensors)",
           "give the folder of a trained model; --random-weights generates with random values");
  out.session = elarge::core().open(config, false);
  return out;
}

namespace {

bool takes_several(const std::string& key) {
  for (const config::Key& each : config::section_of<generation::GenerationConfig>().keys)
    if (each.answers_to(key)) return to_json(each.schema).find("\"array\"") != std::string::npos;
  return false;
}

}  // namespace

generation::GenerationConfig generation_flags(const ModelOptions& options) {
  generation::GenerationConfig out;
  config::Problems problems("command line");
  Value given = Value::map();
  for (const auto& [key, text] : options.generation) {
    std::string flag = "--" + key;
    std::ranges::replace(flag, '_', '-');
    problems.comes_from(key, flag + " " + text);
    Value value = key == "stop_strings" ? Value::text(text) : parse_yaml(text, flag);
    value.place = {};
    Value* const before = given.find(key);
    if (before && !takes_several(key)) refuse(flag, "is given twice", "keep one of them");
    if (before && !before->is_list()) *before = Value{.kind = Value::Kind::list, .items = {*before}};
    before ? (void)before->items.push_back(value) : (void)given.set(key, value);
  }
  config::read_section(config::section_of<generation::GenerationConfig>(), given, &out, "", problems);
  problems.throw_if_any();
  return out;
}

void choose_seed(const std::filesystem::path& folder, generation::GenerationConfig& generation) {
  if (generation.given.contains("seed") || mesh::read_world().size > 1) return;
  if (generation::generation_config(folder, generation).greedy()) return;
  generation.seed = std::random_device{}();
  generation.given.insert("seed");
  log::info("seed ", generation.seed);
}

std::optional<std::string> template_of(const ModelOptions& options) {
  if (options.chat_template.empty()) return std::nullopt;
  return files::read(options.chat_template);
}

Value chat_message(const std::string& role, const std::string& content) {
  Value out = Value::map();
  out.set("role", Value::text(role));
  out.set("content", Value::text(content));
  return out;
}

StopOnInterrupt::StopOnInterrupt() {
  stop_reply = false;
  struct sigaction stopping = {};
  stopping.sa_handler = [](int) { stop_reply = true; };
  stopping.sa_flags = int(SA_RESETHAND);
  ::sigaction(SIGINT, &stopping, &before_);
}

const std::atomic<bool>& reply_is_stopped() { return stop_reply; }

}  // namespace easydel::cli
