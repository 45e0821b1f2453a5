// Writes a model as a folder that transformers loads.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/models/adapter.h"
#include "easydel/models/file_tensors.h"
#include "easydel/models/load_types.h"
#include "easydel/models/model.h"
#include "easydel/models/parts_config.h"
#include "easydel/nn/adapter_slots.h"
#include "easydel/nn/made_codes.h"
#include "easydel/quant/coded_folder.h"
#include "easydel/quant/file_codes.h"
#include "easydel/quant/quantize.h"
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

using Values = std::map<const nn::Entry*, Tensor>;  // whole

// The value that is saved: with the adapters in it. It is computed only while it is written.
struct Merged {
  const Model* model;
  const Values* values;

  Tensor of(const nn::Entry& entry, bool shared = false) const {
    // The tensors of one stack of experts are written one after the other.
    if (!shared && last->entry == &entry) return last->value;
    Tensor value = values->at(&entry);
    for (const auto& adapter : model->adapters())
      value = adapter->merged(entry, value, shared, [this](const nn::Entry& own) { return values->at(&own); });
    if (!shared) *last = {&entry, value};
    return value;
  }

  struct Last {
    const nn::Entry* entry = nullptr;
    Tensor value;
  };
  std::shared_ptr<Last> last = std::make_shared<Last>();
};

// A file's tensor from the parameters that form it; it is assembled only while it is written.
weights::OutTensor written(const FileTensor& file, const Merged& merged, at::ScalarType type) {
  weights::OutTensor out{file.name, tensor::dtype_of(type), file.shape, {}};
  out.write = [file, merged, type](const auto& sink) {
    const at::NoGradGuard no_gradient;
    const auto part = [&](const FilePart& one) {
      const Tensor whole = merged.of(*one.entry);
      return one.index < 0 ? whole : whole.select(0, one.index);
    };
    if (file.is_parameter()) return tensor::to_file(file.name, part(file.parts.front()), type).write(sink);
    const Tensor all = at::empty(file.shape, at::TensorOptions().dtype(type));
    for (const FilePart& one : file.parts) one.entry->source.part_of(all).copy_(part(one));
    tensor::to_file(file.name, all, type).write(sink);
  };
  return out;
}

// An output layer that reads the embedding and has an adapter of its own is saved as a weight of its own.
std::vector<weights::OutTensor> written_heads(const Model& model, const Merged& merged, at::ScalarType type) {
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
    out.back().write = [merged, base = base, name = name, as](const auto& sink) {
      tensor::to_file(name, merged.of(*base, /*shared=*/true), as).write(sink);
    };
  }
  return out;
}

constexpr std::string_view leaf = ".weight";

weights::OutTensor as_it_is(const std::string& name, const weights::TensorView& view) {
  return {name, view.dtype, view.shape, [view](const auto& sink) { sink(view.bytes.data(), view.bytes.size()); }};
}

quant::FileCodesSpec spec_of(quant::FileCodesSpec spec, int64_t k) {
  if (spec.group == 0) spec.group = k;
  return spec;
}

// The weights in codes of a model: those of its folder as they are, and those that were made while it was loaded (the
// section quantization.model) in the files that quant/file_codes.h names.
class SavedCodes {
 public:
  // `files`: all tensors of the model. UserError, at `where`: no file holds codes of a layer. The model outlives it.
  SavedCodes(const Model& model, const std::vector<FileTensor>& files, const std::string& where);
  // The tensors of the weight; none: it is not in codes. Their bytes are made while they are written. `type`: of values
  // that codes stand for.
  std::vector<weights::OutTensor> of(const FileTensor& file, at::ScalarType type) const;
  const Value& section() const { return section_; }  // of config.json

 private:
  void find_made(const Model& model, const std::string& where);
  void plan_made(const Model& model, const std::vector<FileTensor>& files, const std::string& where);
  std::string layer_of(const FileTensor& file) const;

  std::map<const nn::Entry*, nn::MadeCodes> made_;
  quant::FileCodesSpec spec_;  // of these
  bool in_whole_ = false;
  std::optional<quant::CodedFolder> folder_;
  Value section_ = Value::map();
};

SavedCodes::SavedCodes(const Model& model, const std::vector<FileTensor>& files, const std::string& where) {
  const auto& entries = model.parameters().entries();
  const bool kept = std::ranges::any_of(entries, [](const nn::Entry& entry) { return !entry.shard.defined(); });
  find_made(model, where);
  if (!made_.empty()) {
    plan_made(model, files, where);
    return;
  }
  if (!kept || model.folder().empty() || !weights::Folder::has_weights(model.folder())) return;
  const weights::ConfigFile config = weights::read_config(model.folder());
  folder_.emplace(quant::open_coded(model.folder(), config.document, config.where));
  for (const char* const key : {"quantization_config", "compression_config"})
    if (const Value* const found = config.document.find(key)) section_.set(key, *found);
}

void SavedCodes::find_made(const Model& model, const std::string& where) {
  const auto note = [&](const nn::Entry& entry, const nn::Weight& weight, bool shared) {
    const nn::MadeCodes made = nn::made_codes(weight);
    if (!made.format) return;
    if (entry.role == nn::Role::embedding && !shared)
      refuse(where, str("saving ", entry.path, " in codes is not built yet"),
             "choose other layers (quantization.model.pattern), or save the model without quantization.model");
    if (shared)
      refuse(where, "saving an output layer that shares the embedding's weight in codes is not built yet",
             "choose other layers (quantization.model.pattern), or save the model without quantization.model");
    made_[&entry] = made;
  };
  for (const nn::Entry& entry : model.parameters().entries())
    if (entry.weight) note(entry, *entry.weight, false);
  // Behind what chooses the adapters of sequences.
  if (const auto& slots = model.adapter_slots())
    for (const nn::AdapterSlots::Slot& slot : slots->slots())
      if (slot.base) note(*slot.entry, *slot.base, slot.shared);
}

// A text part is saved under the whole model's names.
std::string SavedCodes::layer_of(const FileTensor& file) const {
  const std::string& name = in_whole_ ? file.found : file.name;
  return name.substr(0, name.size() - leaf.size());
}

void SavedCodes::plan_made(const Model& model, const std::vector<FileTensor>& files, const std::string& where) {
  const auto not_built = [&](const std::string& what) {
    refuse(where, str("saving ", what, " in codes is not built yet"),
           "choose other layers (quantization.model.pattern), or save the model without quantization.model");
  };
  const weights::DType values = tensor::dtype_of(model.compute_type());
  in_whole_ = model.whole() != nullptr;
  spec_ = quant::file_spec(*made_.begin()->second.format, values, where);
  std::vector<std::string> plain;
  for (const FileTensor& file : files) {
    const auto coded =
        std::ranges::count_if(file.parts, [&](const FilePart& part) { return made_.contains(part.entry); });
    if (coded == 0) {
      // What a format's own library would take for a linear layer.
      if (file.shape.size() == 2 && file.name.ends_with(leaf) && file.parts.front().entry->role == nn::Role::weight)
        plain.push_back(layer_of(file));
      continue;
    }
    const nn::Entry& first = *file.parts.front().entry;
    const std::string layer = nn::layer_name(first);
    if (file.parts.size() != 1) not_built(layer + ", which shares a tensor with others,");
    if (first.source.transposed || file.shape.size() != 2 || !file.name.ends_with(leaf))
      not_built(layer + ", which is stored transposed or viewed,");
    const int64_t k = file.shape[1];
    if (!quant::fits(spec_of(spec_, k), k)) not_built(str(layer, ", whose rows of ", k, " groups do not divide,"));
  }
  if (std::ranges::find(plain, "lm_head") == plain.end()) plain.emplace_back("lm_head");  // a tied one has no tensor
  section_.set("quantization_config", quant::section_of(spec_, plain));
}

std::vector<weights::OutTensor> SavedCodes::of(const FileTensor& file, at::ScalarType type) const {
  std::vector<weights::OutTensor> out;
  if (!made_.empty()) {
    if (!made_.contains(file.parts.front().entry)) return out;
    const quant::FileCodesSpec spec = spec_of(spec_, file.shape[1]);
    const auto parts = quant::parts_of(spec, file.shape[0], file.shape[1]);
    const nn::MadeCodes made = made_.at(file.parts.front().entry);
    // All parts of a weight at once; they are written one after another.
    const auto bytes = std::make_shared<std::vector<std::vector<std::byte>>>();
    for (size_t i = 0; i < parts.size(); ++i)
      out.push_back({layer_of(file) + parts[i].ending, parts[i].dtype, parts[i].shape,
                     [spec, bytes, i, last = i + 1 == parts.size(), made](const auto& sink) {
                       if (bytes->empty())
                         *bytes = quant::bytes_of_parts(spec, quant::codes_of(made.codes, *made.format));
                       sink((*bytes)[i].data(), (*bytes)[i].size());
                       if (last) bytes->clear();
                     }});
    return out;
  }
  if (!folder_) return out;
  if (const auto weight = folder_->codes(file.found)) {
    if (weight->stands_for_values) {
      if (file.parts.front().entry->shard.defined()) return out;
      out.push_back(
          {file.name, tensor::dtype_of(type), weight->shape, [weight, name = file.name, type](const auto& sink) {
             tensor::to_file(name, quant::values_of(weight), type).write(sink);
           }});
      return out;
    }
    for (const auto& [name, view] : weight->parts) out.push_back(as_it_is(name, view));
    return out;
  }
  for (const char* const ending : {"_blocks", "_scales"})
    if (const std::string name = file.found + ending; folder_->folder().has(name))
      out.push_back(as_it_is(name, folder_->at(name)));
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

void save_model(const Model& model, const std::filesystem::path& folder, DTypeSetting dtype, uint64_t max_shard_bytes) {
  const at::ScalarType type = scalar_type_of(dtype, model.file_type(), "dtype");
  const bool first = model.team().first();
  refuse_unmergeable(model, folder.string());
  // Gathering is collective; only the first rank keeps the result.
  Values values;
  std::vector<FileTensor> file_list = file_tensors(model.parameters());
  for (const nn::Entry& entry : model.parameters().entries())
    if (!entry.shard.defined() && !model.adapters().empty())
      refuse(folder.string(), str("merging into codes is not built yet (", entry.path, ")"),
             "save the adapter alone, or merge it into the plain model");
  const SavedCodes codes(model, file_list, folder.string());
  std::set<const nn::Entry*> in_codes;
  for (const FileTensor& file : file_list)
    if (!codes.of(file, type).empty())
      for (const FilePart& part : file.parts) in_codes.insert(part.entry);
  for (const nn::Entry& entry : model.parameters().entries()) {
    const at::NoGradGuard no_gradient;
    if (in_codes.contains(&entry)) continue;
    if (!entry.shard.defined())
      refuse(folder.string(), str("saving ", entry.path, " in codes is not built yet"),
             "choose other layers (quantization.model.pattern), or save the model without quantization.model");
    const Tensor whole = entry.team->whole(entry.shard.detach(), entry.layout);
    if (first) values[&entry] = whole;
  }
  if (!first) return;
  files::make_directories(folder);
  const Merged merged{&model, &values};
  std::vector<weights::OutTensor> tensors;
  const bool all_as_loaded = dtype == DTypeSetting::automatic;
  for (FileTensor& file : file_list) {
    if (auto saved = codes.of(file, all_as_loaded ? model.file_type() : type); !saved.empty()) {
      std::ranges::move(saved, std::back_inserter(tensors));
      continue;
    }
    const bool as_loaded = all_as_loaded && file.type != at::ScalarType::Undefined;
    if (model.whole()) file.name = file.found;
    tensors.push_back(written(file, merged, as_loaded ? file.type : type));
  }
  if (const WholeModel* const whole = model.whole())
    for (const std::string& name : whole->left_alone) {
      const Tensor value = tensor::from_view(whole->folder.at(name));
      tensors.push_back(
          tensor::to_file(name, value, all_as_loaded || !value.is_floating_point() ? value.scalar_type() : type));
    }
  const auto heads = written_heads(model, merged, all_as_loaded ? at::ScalarType::Undefined : type);
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
}

}  // namespace easydel::models
