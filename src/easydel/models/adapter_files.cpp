// The files of an adapter as PEFT 0.21.2 saves and loads them.
#include <algorithm>
#include <map>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/models/adapter.h"
#include "easydel/models/adapter_names.h"
#include "easydel/models/model.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;

std::string last_name(const std::string& module) { return module.substr(module.rfind('.') + 1); }

std::string peft_task(Task task) {
  switch (task) {
    case Task::causal_lm:
      return "CAUSAL_LM";
    case Task::sequence_classification:
      return "SEQ_CLS";
    case Task::token_classification:
      return "TOKEN_CLS";
    case Task::question_answering:
      return "QUESTION_ANS";
    case Task::base:
      return "FEATURE_EXTRACTION";
    default:
      return "";
  }
}

// all-linear as PEFT writes it: names of layers. A layer's last name, if all layers of that name are adapted.
std::vector<std::string> adapted_names(const nn::ParameterTable& table, const Adapter& adapter) {
  std::set<std::string> adapted, names;
  for (const Adapter::Layer& layer : adapter.layers())
    if (layer.has_low_rank() && !layer.by_parameter) adapted.insert(layer.module);
  std::set<std::string> others;
  for (const nn::Entry& entry : table.entries())
    if (!entry.adapter && !adapted.contains(nn::layer_name(entry))) others.insert(last_name(nn::layer_name(entry)));
  for (const std::string& module : adapted) {
    const std::string last = last_name(module);
    names.insert(others.contains(last) ? module : last);
  }
  return {names.begin(), names.end()};
}

// What an adapter saves of the base: names in the file and entries.
std::vector<std::pair<std::string, const nn::Entry*>> saved_of_base(const nn::ParameterTable& table,
                                                                    const Adapter& adapter) {
  std::vector<std::pair<std::string, const nn::Entry*>> out;
  std::set<std::string> adapted;
  // PEFT saves no embedding then.
  const bool by_row =
      std::ranges::any_of(adapter.layers(), [](const Adapter::Layer& layer) { return !layer.rows.empty(); });
  for (const Adapter::Layer& layer : adapter.layers()) {
    if (!layer.has_low_rank()) continue;
    adapted.insert(layer.module);
    const std::string last = last_name(layer.module);
    if (!by_row && !layer.by_parameter && (last == "embed_tokens" || last == "lm_head"))
      out.emplace_back(str(peft_prefix, layer.module, ".base_layer.weight"), layer.base);
  }
  for (const nn::Entry& entry : table.entries()) {
    if (entry.adapter || !adapter.learns(entry)) continue;
    const size_t dot = entry.path.rfind('.');
    const std::string module = entry.path.substr(0, dot), leaf = entry.path.substr(dot);
    out.emplace_back(
        adapted.contains(module) ? str(peft_prefix, module, ".base_layer", leaf) : str(peft_prefix, entry.path),
        &entry);
  }
  // What a folder had of the base, such as an embedding that grew.
  for (const auto& [entry, name] : adapter.held_of_base())
    if (std::ranges::find(out, entry, [](const auto& pair) { return pair.second; }) == out.end())
      out.emplace_back(name, entry);
  return out;
}

// As PEFT's trainable_token_indices: a list for the embedding alone, else a list for each layer.
Value trained_rows(const Adapter& adapter) {
  Value by_layer = Value::map();
  for (const Adapter::Layer& layer : adapter.layers()) {
    if (layer.rows.empty()) continue;
    Value ids = Value::list();
    for (const int64_t id : layer.rows) ids.items.push_back(Value::integer(id));
    by_layer.set(last_name(layer.module), std::move(ids));
  }
  if (by_layer.entries.size() == 1) return by_layer.entries.front().second;
  return by_layer.entries.empty() ? Value{} : by_layer;
}

std::string readme(const LoraConfig& lora, const std::string& base) {
  std::string out = "---\n";
  if (!base.empty() && !base.starts_with('/')) out += "base_model: " + base + "\n";
  out += "library_name: peft\ntags:\n- lora\n- easydel\n---\n\n# LoRA adapter\n\n";
  out += str("A low-rank adapter (r ", lora.r, ", alpha ", lora.alpha, lora.use_dora ? ", DoRA" : "",
             lora.use_rslora ? ", rsLoRA" : "", ")", base.empty() ? "" : " of `" + base + "`", ".\n\n");
  out +=
      "PEFT loads it: `PeftModel.from_pretrained(model, folder)`. So does EasyDeL: `easydel generate --adapter folder "
      "MODEL`, and `easydel merge MODEL --adapter folder --out merged` writes a plain model.\n";
  return out;
}

}  // namespace

void save_adapter(const Model& model, const Adapter& adapter, const fs::path& folder, const std::string& base) {
  const bool first = model.team().first();
  const at::NoGradGuard no_gradient;
  std::vector<weights::OutTensor> tensors;
  const auto add = [&](const std::string& name, const nn::Entry& entry) {
    if (!entry.shard.defined())
      refuse(folder.string(), str("saving ", entry.path, " is not built yet, as it is in codes"),
             "leave it out of lora.target_modules");
    const Tensor whole = entry.team->whole(entry.shard.detach(), entry.layout);
    const Tensor saved = entry.source.transposed ? whole.t() : whole;
    if (first) tensors.push_back(tensor::to_file(name, saved.contiguous(), saved.scalar_type()));
  };
  for (const nn::Entry& entry : model.parameters().entries())
    if (adapter.owns(entry)) add(entry.source.tensors.front(), entry);
  for (const auto& [name, entry] : saved_of_base(model.parameters(), adapter)) add(name, *entry);
  if (!first) return;
  LoraConfig config = adapter.options().config;
  if (!adapter.options().added.empty()) config.trainable_token_indices = trained_rows(adapter);
  if (const auto* const text = std::get_if<std::string>(&config.target_modules); text && *text == all_linear) {
    const std::vector<std::string> names = adapted_names(model.parameters(), adapter);
    if (!names.empty()) config.target_modules = names;
    // The names are those of the adapted layers alone.
    if (config.layers_to_transform.empty()) config.exclude_modules.reset();
  }
  files::make_directories(folder);
  weights::write_safetensors(folder / adapter_weights_name, tensors);
  files::write(folder / adapter_config_name,
               to_json(written_adapter_config(config, base, peft_task(model.task())), 2) + "\n");
  files::write(folder / "README.md", readme(config, base));
}

void load_adapter(Model& model, const Adapter& adapter, const fs::path& folder) {
  const at::NoGradGuard no_gradient;
  const auto file = weights::SafetensorsFile::open(folder / adapter_weights_name);
  const auto take = [&](const std::string& name, nn::Entry& entry) {
    const std::vector<int64_t> needed = entry.source.file_shape(entry.shape);
    if (!file->has(name) || file->at(name).shape != needed)
      refuse(file->path().string(), str(file->has(name) ? "has another shape of " : "has no ", name),
             "the checkpoint is of another adapter; name another save_directory, or set resume_if_possible: false");
    nn::TensorSource source = entry.source;
    source.tensors = {name};
    const Tensor whole = source.part_of(tensor::from_view(file->at(name)));
    entry.shard.copy_(entry.team->cut(whole.to(entry.shard.scalar_type()), entry.layout));
    entry.written();
  };
  for (nn::Entry& entry : model.parameters().entries())
    if (adapter.owns(entry)) take(entry.source.tensors.front(), entry);
  for (const auto& [name, entry] : saved_of_base(model.parameters(), adapter))
    if (adapter.learns(*entry)) take(name, *model.parameters().find(entry->path));
}

}  // namespace easydel::models
