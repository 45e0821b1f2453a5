#include "easydel/models/saved_codes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/models/adapter.h"
#include "easydel/models/parts_config.h"
#include "easydel/nn/adapter_slots.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/quant/made_codes.h"
#include "easydel/quant/quantize.h"
#include "easydel/tensor/dtype.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/folder.h"

namespace easydel::models {
namespace {

constexpr std::string_view leaf = ".weight";

weights::OutTensor as_it_is(const std::string& name, const weights::TensorView& view) {
  return {name, view.dtype, view.shape, [view](const auto& sink) { sink(view.bytes.data(), view.bytes.size()); }};
}

std::string layer_of(const std::string& weight) { return weight.substr(0, weight.size() - leaf.size()); }

quant::FileCodesSpec spec_of(quant::FileCodesSpec spec, int64_t k) {
  if (spec.group == 0) spec.group = k;
  return spec;
}

// Whether an adapter changes a part of the tensor.
bool changes(const Model& model, const FileTensor& file) {
  return std::ranges::any_of(model.adapters(), [&](const auto& adapter) {
    return std::ranges::any_of(file.parts, [&](const FilePart& part) { return adapter->changes(*part.entry, false); });
  });
}

}  // namespace

SavedCodes::SavedCodes(const Model& model, const std::vector<FileTensor>& files, bool merge_to_codes,
                       const std::string& where) {
  const bool merges = !model.adapters().empty();
  if (merges && !merge_to_codes) return;
  const auto& entries = model.parameters().entries();
  const bool kept = std::ranges::any_of(entries, [](const nn::Entry& entry) { return !entry.shard.defined(); });
  if (merges && !kept)
    refuse(where, "the model has no weights in codes, so an adapter cannot be merged into codes",
           "leave it out, or give the format of its codes in quantization.model");
  if (const Made made = find_made(model, where); !made.empty()) {
    plan_made(model, made, files, where);
    return;
  }
  if (!kept || model.folder().empty() || !weights::Folder::has_weights(model.folder())) return;
  const weights::ConfigFile config = weights::read_config(model.folder());
  folder_.emplace(quant::open_coded(model.folder(), config.document, config.where));
  for (const char* const key : {"quantization_config", "compression_config"})
    if (const Value* const found = config.document.find(key)) section_.set(key, *found);
  if (merges) plan_merged(model, files, where);
}

SavedCodes::Made SavedCodes::find_made(const Model& model, const std::string& where) const {
  Made out;
  for (const nn::Entry& entry : model.parameters().entries())
    if (const nn::MadeCodes made = entry.weight ? nn::made_codes(*entry.weight) : nn::MadeCodes{}; made.format) {
      if (entry.role == nn::Role::embedding)
        refuse(where, str("saving ", entry.path, " in codes is not built yet"),
               "choose other layers (quantization.model.pattern), or save the model without quantization.model");
      out[&entry] = made;
    }
  if (const auto& slots = model.adapter_slots())
    for (const nn::AdapterSlots::Slot& slot : slots->slots())
      if (slot.shared && nn::made_codes(*slot.base).format)
        refuse(where, "saving an output layer that shares the embedding's weight in codes is not built yet",
               "choose other layers (quantization.model.pattern), or save the model without quantization.model");
  return out;
}

void SavedCodes::plan_made(const Model& model, const Made& made, const std::vector<FileTensor>& files,
                           const std::string& where) {
  const auto not_built = [&](const std::string& what) {
    refuse(where, str("saving ", what, " in codes is not built yet"),
           "choose other layers (quantization.model.pattern), or save the model without quantization.model");
  };
  const quant::Format& format = *made.begin()->second.format;
  const quant::FileCodesSpec spec = quant::file_spec(format, tensor::dtype_of(model.compute_type()), where);
  // A text part is saved under the whole model's names.
  const auto name_of = [&](const FileTensor& file) { return layer_of(model.whole() ? file.found : file.name); };
  std::vector<std::string> plain;
  for (const FileTensor& file : files) {
    const auto coded =
        std::ranges::count_if(file.parts, [&](const FilePart& part) { return made.contains(part.entry); });
    if (coded == 0) {
      // What a format's own library would take for a linear layer.
      if (file.shape.size() == 2 && file.name.ends_with(leaf) && file.parts.front().entry->role == nn::Role::weight)
        plain.push_back(name_of(file));
      continue;
    }
    const nn::Entry& first = *file.parts.front().entry;
    const std::string layer = nn::layer_name(first);
    if (file.parts.size() != 1) not_built(layer + ", which shares a tensor with others,");
    if (first.source.transposed || file.shape.size() != 2 || !file.name.ends_with(leaf))
      not_built(layer + ", which is stored transposed or viewed,");
    const int64_t k = file.shape[1];
    if (!quant::fits(spec_of(spec, k), k)) not_built(str(layer, ", whose rows of ", k, " groups do not divide,"));
    const bool merged = changes(model, file);
    if (merged) format_ = format.name;
    plans_[file.name] = {format, spec_of(spec, k), first.compute, name_of(file),
                         merged ? std::nullopt : std::optional(made.at(&first).codes)};
  }
  if (std::ranges::find(plain, "lm_head") == plain.end()) plain.emplace_back("lm_head");  // a tied one has no tensor
  section_.set("quantization_config", quant::section_of(spec, plain));
}

void SavedCodes::plan_merged(const Model& model, const std::vector<FileTensor>& files, const std::string& where) {
  for (const FileTensor& file : files) {
    const auto weight = folder_->codes(file.found);
    const bool coded =
        std::ranges::any_of(file.parts, [](const FilePart& part) { return !part.entry->shard.defined(); });
    if (!coded || !changes(model, file)) continue;
    const auto format = weight ? quant::four_bit_format(*weight) : std::nullopt;
    if (!format || file.shape.size() != 2)
      refuse(where,
             str("merging into codes of ", weight ? weight->format : "mxfp4", " is not built yet (",
                 nn::layer_name(*file.parts.front().entry), ")"),
             "leave it out, and write the merged model in codes by easydel quantize");
    format_ = format->name;
    plans_[file.name] = {*format, quant::file_spec(*format, weight->dtype, where), model.compute_type(),
                         layer_of(file.found)};
  }
}

bool SavedCodes::has(const FileTensor& file) const {
  if (plans_.contains(file.name)) return true;
  if (!folder_) return false;
  if (const auto weight = folder_->codes(file.found))
    return !weight->stands_for_values || !file.parts.front().entry->shard.defined();
  return folder_->folder().has(file.found + "_blocks");
}

std::vector<weights::OutTensor> SavedCodes::of(const FileTensor& file, const MergedWeights& merged,
                                               at::ScalarType type) const {
  std::vector<weights::OutTensor> out;
  if (const auto found = plans_.find(file.name); found != plans_.end()) {
    const Plan& plan = found->second;
    const auto parts = quant::parts_of(plan.spec, file.shape[0], file.shape[1]);
    // All parts of a weight at once; they are written one after another.
    const auto bytes = std::make_shared<std::vector<std::vector<std::byte>>>();
    const auto make = [plan, file, &merged] {
      if (plan.codes) return quant::bytes_of_parts(plan.spec, quant::codes_of(*plan.codes, plan.format));
      const Tensor values = merged.exact(file);
      const ops::Matrix codes = quant::coded(values, plan.format, plan.compute);
      merged.note(file, values, ops::decoded(codes, at::kFloat));
      return quant::bytes_of_parts(plan.spec, quant::codes_of(codes, plan.format));
    };
    for (size_t i = 0; i < parts.size(); ++i)
      out.push_back({plan.layer + parts[i].ending, parts[i].dtype, parts[i].shape,
                     [bytes, make, i, last = i + 1 == parts.size()](const auto& sink) {
                       if (bytes->empty()) *bytes = make();
                       sink((*bytes)[i].data(), (*bytes)[i].size());
                       if (last) bytes->clear();
                     }});
    return out;
  }
  if (!folder_) return out;
  if (const auto weight = folder_->codes(file.found)) {
    if (weight->stands_for_values) {
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

}  // namespace easydel::models
