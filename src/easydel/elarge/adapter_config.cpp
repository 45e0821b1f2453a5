#include "easydel/elarge/adapter_config.h"

#include <set>

#include "easydel/base/error.h"
#include "easydel/hub/resolve.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::elarge {
namespace {

namespace fs = std::filesystem;

// The keys of the section that say how a run goes on from an adapter. All others are facts of the adapter.
const std::set<std::string> of_the_run = {"adapter",           "dropout",    "lora_plus_ratio",
                                          "init_lora_weights", "merge_base", "merge_to_codes"};

// What the folder says, with the section's keys of the run.
LoraConfig joined(const LoraConfig& section, LoraConfig held, const std::string& folder) {
  const Value given = config::write(section), own = config::write(held);
  for (const std::string& key : section.given)
    if (!of_the_run.contains(key) && !(*given.find(key) == *own.find(key)))
      refuse("lora." + key,
             str(to_yaml_flow(*given.find(key)), " contradicts lora.adapter, which has ", to_yaml_flow(*own.find(key)),
                 " (", folder, ")"),
             "leave the key out: the adapter's own configuration holds");
  if (section.given.contains("dropout")) held.dropout = section.dropout;
  held.lora_plus_ratio = section.lora_plus_ratio;
  held.merge_base = section.merge_base;
  held.merge_to_codes = section.merge_to_codes;
  return held;
}

// The adapter's own folder, of a path or a name on the hub, or of a checkpoint that has it in `adapter`.
fs::path adapter_folder(const std::string& named, const std::string& where) {
  fs::path folder = hub::resolve_model(named, where);
  if (!models::is_adapter(folder) && models::is_adapter(folder / "adapter")) folder /= "adapter";
  return folder;
}

}  // namespace

std::vector<NamedAdapter> named_adapters(const Config& config) {
  std::vector<NamedAdapter> out;
  for (const auto& [name, folder] : config.adapters.entries) {
    if (folder.is_map()) continue;
    out.push_back({name, adapter_folder(*folder.as_string(), "adapters." + name)});
    models::read_adapter_config(out.back().folder);
  }
  for (const auto& [name, value] : config.adapters.entries) {
    if (!value.is_map()) continue;
    NamedAdapter& sum = out.emplace_back(NamedAdapter{.name = name, .folder = {}});
    const auto& [kind, shares] = value.entries.front();
    sum.sum = kind == "cat" ? models::AdapterSum::Kind::cat : models::AdapterSum::Kind::linear;
    for (const auto& [part, weight] : shares.entries) sum.shares.push_back({part, *weight.as_double()});
  }
  return out;
}

std::optional<RunAdapter> adapter_of(const Config& config, bool training) {
  const fs::path named = hub::resolve_model(config.model.name_or_path, "model.name_or_path", config.model.revision,
                                            hub::ModelFiles::description);
  const fs::path own = models::find_base(named, "model.name_or_path", hub::ModelFiles::description).adapter;
  if (config.lora && config.lora->adapter) {
    if (!own.empty())
      refuse("lora.adapter", str("model.name_or_path is an adapter already: ", own.string()),
             "name the model itself in model.name_or_path");
    const fs::path folder = adapter_folder(*config.lora->adapter, "lora.adapter");
    LoraConfig held = models::read_adapter_config(folder).lora;
    return RunAdapter{joined(*config.lora, std::move(held), folder.string()), folder, "lora.adapter"};
  }
  if (!own.empty()) {
    if (config.lora && training)
      refuse("lora", str("model.name_or_path is an adapter already: ", own.string()),
             "leave the section out to go on training that adapter, or name the model itself");
    return RunAdapter{models::read_adapter_config(own).lora, own, "model.name_or_path"};
  }
  if (!training || (!config.lora && !config.quantization.weight_format())) return std::nullopt;
  RunAdapter out{config.lora.value_or(LoraConfig{}), {}, "lora"};
  if (const auto tokens = added_tokens(config, training); !tokens.empty()) {
    const fs::path folder = config.model.tokenizer ? hub::resolve_model(*config.model.tokenizer, "model.tokenizer",
                                                                        "main", hub::ModelFiles::description)
                                                   : named;
    const auto ids = text::Tokenizer::load(folder, std::nullopt, tokens)->new_tokens();
    out.added.assign(ids.begin(), ids.end());
  }
  return out;
}

void refuse_codes_beside_adapter() {
  refuse("trainer.quantization_mode",
         "trains the weights themselves, and a run with an adapter leaves them as they are",
         "leave out the section lora and quantization.model, or quantization_mode");
}

std::vector<std::string> added_tokens(const Config& config, bool training) {
  return training && config.lora ? config.lora->added_tokens : std::vector<std::string>{};
}

}  // namespace easydel::elarge
