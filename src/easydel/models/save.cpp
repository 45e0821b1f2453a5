// Writes a model as a folder that transformers loads.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/models/adapter.h"
#include "easydel/models/file_tensors.h"
#include "easydel/models/load_types.h"
#include "easydel/models/merged_weights.h"
#include "easydel/models/model.h"
#include "easydel/models/parts_config.h"
#include "easydel/models/saved_codes.h"
#include "easydel/tensor/dtype.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/folder.h"
#include "easydel/weights/safetensors.h"

namespace easydel::models {
namespace {

std::string config_name(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return "bfloat16";
    case at::kHalf:
      return "float16";
    case at::kDouble:
      return "float64";
    default:
      return "float32";
  }
}

// A file's tensor from the parameters that form it; it is assembled only while it, or the one before it, is written.
weights::OutTensor written(const FileTensor& file, const std::string& name, const MergedWeights& merged,
                           at::ScalarType type) {
  weights::OutTensor out{name, tensor::dtype_of(type), file.shape, {}};
  out.make = [file, &merged, type] {
    // A weight that is mapped from the model's own file is in memory no longer than it is written.
    const auto release = [file](const Tensor* value) {
      delete value;
      for (const FilePart& part : file.parts)
        if (part.entry->shard.defined() && part.entry->version == 0) tensor::forget(part.entry->shard);
    };
    const std::shared_ptr<const Tensor> value(
        new Tensor(merged.of(file, type).detach().to(at::kCPU, type).contiguous()), release);
    return weights::HeldBytes{
        value,
        {static_cast<const std::byte*>(value->const_data_ptr()), size_t(value->numel()) * value->element_size()}};
  };
  return out;
}

// An output layer that reads the embedding and has an adapter of its own is saved as a weight of its own.
std::vector<weights::OutTensor> written_heads(const Model& model, const MergedWeights& merged, at::ScalarType type) {
  std::map<std::string, const nn::Entry*> heads;
  for (const auto& adapter : model.adapters())
    for (const Adapter::Layer& layer : adapter->layers())
      if (layer.shared) heads[layer.module + ".weight"] = layer.base;
  std::vector<weights::OutTensor> out;
  for (const auto& [name, base] : heads) {
    const at::ScalarType own = base->source.found_type;
    const at::ScalarType as = type != at::ScalarType::Undefined  ? type
                              : own != at::ScalarType::Undefined ? own
                                                                 : model.file_type();
    out.push_back({name, tensor::dtype_of(as), base->shape, {}});
    out.back().write = [&merged, base = base, name = name, as](const auto& sink) {
      tensor::to_file(name, merged.of(*base, /*shared=*/true), as).write(sink);
    };
  }
  return out;
}

}  // namespace

void refuse_unmergeable(const Model& model, const std::string& where) {
  for (const auto& adapter : model.adapters())
    for (const Adapter::Layer& layer : adapter->layers()) {
      if (layer.shared && model.whole())
        refuse(where, str("merging into ", layer.module, ", the shared output layer of a text part, is not built yet"),
               "leave it out of lora.target_modules");
      if (layer.parts.bias && !model.parameters().find(layer.module + ".bias"))
        refuse(where, str("lora_bias cannot be merged: ", layer.module, " has no bias"),
               "set merge_lora_before_save: false, or lora_bias: false");
    }
}

MergeOptions merge_options(const Model& model, const LoadOptions& load, const MergeKeys& keys) {
  MergeOptions out{.to_codes = keys.to_codes};
  if (keys.to_codes) SavedCodes(model, file_tensors(model.parameters()), true, keys.codes_key);
  const auto& entries = model.parameters().entries();
  const bool codes = std::ranges::any_of(entries, [](const nn::Entry& entry) { return !entry.shard.defined(); });
  if (keys.base == MergeBase::trained || !codes) return out;
  const std::string& where = keys.base_key;
  if (!load.quantization)
    refuse(where, str("the weights of ", model.folder().string(), " are codes, so the original ones are not known"),
           "leave it out, or merge the adapter into the unquantized model: easydel merge");
  for (const auto& adapter : model.adapters())
    if (const LoraStart& start = adapter->options().config.init_lora_weights; start.changes_base())
      refuse(where,
             str("an adapter that started as ", config::Codec<LoraStart>::write(start).scalar,
                 " has a part of the original weights in it, and cannot be added to them"),
             "leave it out");
  LoadOptions plain = load;
  plain.training = false;
  plain.keep_file_types = true;
  plain.team = collective::Team::alone();  // the first rank reads it whole
  plain.adapters.clear();
  plain.quantization.reset();
  plain.weight_policy.reset();
  out.original = load_model(model.folder(), plain);
  return out;
}

void save_model(const Model& model, const std::filesystem::path& folder, DTypeSetting dtype, uint64_t max_shard_bytes,
                const MergeOptions& merge) {
  const at::ScalarType type = scalar_type_of(dtype, model.file_type(), "dtype");
  const bool first = model.team().first();
  refuse_unmergeable(model, folder.string());
  const std::vector<FileTensor> file_list = file_tensors(model.parameters());
  const SavedCodes codes(model, file_list, merge.to_codes, folder.string());
  std::set<const nn::Entry*> in_codes;
  for (const FileTensor& file : file_list)
    if (codes.has(file))
      for (const FilePart& part : file.parts) in_codes.insert(part.entry);
  // Gathering is collective; only the first rank keeps the result.
  WholeWeights values;
  for (const nn::Entry& entry : model.parameters().entries()) {
    const at::NoGradGuard no_gradient;
    if (!entry.shard.defined()) {
      if (model.adapters().empty() && !in_codes.contains(&entry))
        refuse(folder.string(), str("saving ", entry.path, " in codes is not built yet"),
               "choose other layers (quantization.model.pattern), or save the model without quantization.model");
      if (model.adapters().empty()) continue;
      if (auto whole = nn::whole_codes(entry); first) values.codes[&entry] = std::move(whole);
      continue;
    }
    const Tensor whole = entry.team->whole(entry.shard.detach(), entry.layout);
    if (first) values.values[&entry] = whole;
  }
  if (!first) return;
  files::make_directories(folder);
  const MergedWeights merged(model, std::move(values), merge);
  std::vector<weights::OutTensor> tensors;
  const bool all_as_loaded = dtype == DTypeSetting::automatic;
  for (const FileTensor& file : file_list) {
    if (codes.has(file)) {
      std::ranges::move(codes.of(file, merged, all_as_loaded ? model.file_type() : type), std::back_inserter(tensors));
      continue;
    }
    const bool as_loaded = all_as_loaded && file.type != at::ScalarType::Undefined;
    tensors.push_back(written(file, model.whole() ? file.found : file.name, merged, as_loaded ? file.type : type));
  }
  if (const WholeModel* const whole = model.whole())
    for (const std::string& name : whole->left_alone) {
      const Tensor value = tensor::from_view(whole->folder.at(name));
      tensors.push_back(
          tensor::to_file(name, value, all_as_loaded || !value.is_floating_point() ? value.scalar_type() : type));
    }
  auto heads = written_heads(model, merged, all_as_loaded ? at::ScalarType::Undefined : type);
  std::ranges::move(codes.heads(merged), std::back_inserter(heads));
  std::ranges::copy(heads, std::back_inserter(tensors));
  weights::write_folder(folder, tensors, max_shard_bytes);
  Value config = model.whole() ? model.whole()->config : model.config();
  // Uses the spelling of the dtype key that the file already has.
  config.set(config.find("torch_dtype") && !config.find("dtype") ? "torch_dtype" : "dtype",
             Value::text(config_name(type)));
  if (!heads.empty()) config.set("tie_word_embeddings", Value::boolean(false));
  // Codes that were decoded are written as values.
  std::erase_if(config.entries, [](const auto& entry) {
    return entry.first == "quantization_config" || entry.first == "compression_config";
  });
  for (const auto& [key, value] : codes.section().entries) config.set(key, value);
  files::write(folder / "config.json", to_json(config, 2) + "\n");
  weights::keep_generation_config(model.folder(), folder);
  if (const std::string told = merged.told(codes.format().empty() ? config_name(type) : codes.format()); !told.empty())
    log::info(told);
}

}  // namespace easydel::models
