#include "easydel/models/saved_codes.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/models/adapter.h"
#include "easydel/models/parts_config.h"
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

[[noreturn]] void refuse_made(const std::string& where, const std::string& what) {
  refuse(where, str("saving ", what, " in codes is not built yet"),
         "choose other layers (quantization.model.pattern), or save the model without quantization.model");
}

// A stack of experts that the family's files may hold in blocks of mxfp4.
bool is_in_blocks(const nn::Entry& entry) {
  return entry.shape.size() == 3 && !entry.source.stacked && entry.packing == nn::Packing::mxfp4;
}

// The format of codes that were made; null: there are none.
const quant::Format* first_format(const Model& model, const std::map<const nn::Entry*, nn::MadeCodes>& made) {
  if (!made.empty()) return made.begin()->second.format;
  for (const nn::Entry& entry : model.parameters().entries())
    if (entry.tied_weight)
      if (const nn::MadeCodes of = nn::made_codes(*entry.tied_weight); of.format) return of.format;
  return nullptr;
}

// Whether an adapter changes the output layer that reads the embedding, beside it.
bool changes_tied(const Model& model, const nn::Entry& embedding) {
  return std::ranges::any_of(model.adapters(),
                             [&](const auto& adapter) { return adapter->changes(embedding, /*shared=*/true); });
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
  if (const Made made = find_made(model); !made.empty() || first_format(model, made)) {
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

SavedCodes::Made SavedCodes::find_made(const Model& model) const {
  Made out;
  for (const nn::Entry& entry : model.parameters().entries())
    if (nn::MadeCodes made = nn::made_codes(entry); made.format) out[&entry] = std::move(made);
  return out;
}

void SavedCodes::plan_made(const Model& model, const Made& made, const std::vector<FileTensor>& files,
                           const std::string& where) {
  const bool blocks = std::ranges::any_of(made, [](const auto& one) { return is_in_blocks(*one.first); });
  if (blocks) return plan_blocks(model, made, files, where);
  const quant::Format& format = *first_format(model, made);
  const quant::FileCodesSpec spec = quant::file_spec(format, tensor::dtype_of(model.compute_type()), where);
  // A text part is saved under the whole model's names.
  const auto name_of = [&](const FileTensor& file) { return layer_of(model.whole() ? file.found : file.name); };
  std::vector<std::string> plain, embeddings;
  for (const FileTensor& file : files) {
    const auto coded =
        std::ranges::count_if(file.parts, [&](const FilePart& part) { return made.contains(part.entry); });
    const nn::Entry& first = *file.parts.front().entry;
    if (coded == 0) {
      // What a format's own library would take for a linear layer.
      if (file.shape.size() == 2 && file.name.ends_with(leaf) && first.role == nn::Role::weight)
        plain.push_back(name_of(file));
      continue;
    }
    const std::string layer = nn::layer_name(first);
    const int64_t expert = file.parts.front().index;
    if (first.shape.size() == 3 && expert < 0)
      refuse_made(where, layer + ", whose experts are one tensor of the file,");
    if (file.parts.size() != 1) refuse_made(where, layer + ", which shares a tensor with others,");
    if (first.source.transposed || file.shape.size() != 2 || !file.name.ends_with(leaf))
      refuse_made(where, layer + ", which is stored transposed or viewed,");
    const int64_t k = file.shape[1];
    const bool embedding = first.role == nn::Role::embedding, merged = changes(model, file);
    const auto own = embedding ? quant::spec_of_embeddings(spec) : std::optional(spec);
    if (!own || (expert >= 0 && !quant::holds_experts(spec)))
      refuse(where,
             str("transformers loads no ", embedding ? "embeddings" : "experts", " in ", format.name, " (", layer, ")"),
             "choose 8bit, other layers (quantization.model.pattern), or save the model without quantization.model");
    if (!quant::fits(spec_of(*own, k), k))
      refuse_made(where, str(layer, ", whose rows of ", k, " groups do not divide,"));
    if (embedding) embeddings.push_back(name_of(file));
    if (merged) format_ = format.name;
    const size_t matrix = expert < 0 ? 0 : size_t(expert);
    plans_[file.name] = {format, spec_of(*own, k), first.compute, name_of(file),
                         merged ? std::nullopt : std::optional(made.at(&first).codes[matrix])};
  }
  plan_heads(model, made, files, spec, where);
  // A tied one has no tensor.
  if (heads_.empty() && std::ranges::find(plain, "lm_head") == plain.end()) plain.emplace_back("lm_head");
  section_.set("quantization_config", quant::section_of(spec, plain, embeddings));
}

void SavedCodes::plan_heads(const Model& model, const Made& made, const std::vector<FileTensor>& files,
                            const quant::FileCodesSpec& spec, const std::string& where) {
  for (const FileTensor& file : files) {
    const nn::Entry& entry = *file.parts.front().entry;
    if (!entry.tied_weight) continue;
    const nn::MadeCodes own = nn::made_codes(*entry.tied_weight);
    const bool adapted = changes_tied(model, entry);
    if (!own.format || (adapted && made.contains(&entry))) continue;  // none, or it is written with the adapter in it
    if (model.whole()) refuse_made(where, entry.tied_layer + ", the shared output layer of a text part,");
    if (adapted) refuse_made(where, entry.tied_layer + ", a shared output layer with an adapter,");
    Plan plan{*own.format, spec_of(spec, entry.shape[1]), entry.compute, entry.tied_layer, own.codes.front()};
    if (!quant::fits(plan.spec, entry.shape[1]))
      refuse_made(where, str(entry.tied_layer, ", whose rows of ", entry.shape[1], " groups do not divide,"));
    if (made.contains(&entry)) plan.codes = plans_.at(file.name).codes;
    heads_.emplace_back(std::move(plan), file);
  }
}

void SavedCodes::plan_blocks(const Model& model, const Made& made, const std::vector<FileTensor>& files,
                             const std::string& where) {
  for (const nn::Entry& entry : model.parameters().entries()) {
    const auto found = made.find(&entry);
    if (found == made.end()) continue;
    const bool stack = is_in_blocks(entry);
    const std::string& format = found->second.format->name;
    if (!stack || format != "mxfp4")
      refuse(where,
             stack ? str("no file format holds ", nn::layer_name(entry), " in ", format)
                   : str("no file format holds experts in blocks of mxfp4 and ", nn::layer_name(entry), " in codes"),
             "choose mxfp4 for the experts alone (quantization.model.pattern: experts), or save the model without "
             "quantization.model");
  }
  for (const FileTensor& file : files) {
    const nn::Entry& first = *file.parts.front().entry;
    if (!made.contains(&first)) continue;
    int64_t rows = 0;
    if (changes(model, file)) refuse_made(where, nn::layer_name(first) + ", with an adapter merged into it,");
    BlocksPlan plan{model.whole() ? file.found : file.name, first.shape, {}};
    for (const FilePart& part : file.parts) {
      const auto found = made.find(part.entry);
      if (found == made.end()) refuse_made(where, nn::layer_name(first) + ", which shares a tensor with others,");
      plan.parts.emplace_back(part.entry, found->second);
      rows += part.entry->shape[1];
    }
    plan.shape[1] = rows;
    if (plan.shape[2] % 32 != 0)
      refuse_made(where, str(nn::layer_name(first), ", whose rows of ", plan.shape[2], " groups do not divide,"));
    blocks_[file.name] = std::move(plan);
  }
  section_.set("quantization_config", quant::section_of_blocks());
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
  if (plans_.contains(file.name) || blocks_.contains(file.name)) return true;
  if (!folder_) return false;
  if (const auto weight = folder_->codes(file.found))
    return !weight->stands_for_values || !file.parts.front().entry->shard.defined();
  return folder_->folder().has(file.found + "_blocks");
}

std::vector<weights::OutTensor> SavedCodes::parts_of(const Plan& plan, int64_t n, int64_t k,
                                                     std::function<Bytes()> make) const {
  std::vector<weights::OutTensor> out;
  const auto parts = quant::parts_of(plan.spec, n, k);
  for (size_t i = 0; i < parts.size(); ++i)
    out.push_back({plan.layer + parts[i].ending, parts[i].dtype, parts[i].shape,
                   [last = last_, layer = plan.layer, make, i](const auto& sink) {
                     if (last->layer != layer) *last = {layer, make()};
                     sink(last->bytes[i].data(), last->bytes[i].size());
                   }});
  return out;
}

SavedCodes::Bytes SavedCodes::block_bytes(const BlocksPlan& plan, int64_t expert) {
  const quant::FileCodesSpec spec{.codes = quant::FileCodes::mxfp4};
  const int64_t rows = plan.shape[1], k = plan.shape[2], groups = k / 32;
  quant::WeightCodes whole{.n = rows,
                           .k = k,
                           .codes = std::vector<uint8_t>(size_t(rows * k)),
                           .scales = std::vector<float>(size_t(rows * groups))};
  for (const auto& [entry, made] : plan.parts) {
    const quant::WeightCodes part = quant::codes_of(made.codes[size_t(expert)], *made.format);
    const nn::TensorSource& source = entry->source;
    const int64_t first = source.end > 0 ? source.begin : 0, step = source.end > 0 ? source.step : 1;
    for (int64_t r = 0; r < part.n; ++r) {
      std::copy_n(part.codes.begin() + r * k, k, whole.codes.begin() + (first + r * step) * k);
      std::copy_n(part.scales.begin() + r * groups, groups, whole.scales.begin() + (first + r * step) * groups);
    }
  }
  return quant::bytes_of_parts(spec, whole);
}

std::vector<weights::OutTensor> SavedCodes::coded(const Plan& plan, const FileTensor& file,
                                                  const MergedWeights& merged) const {
  const auto noted = std::make_shared<bool>(false);
  return parts_of(plan, file.shape[0], file.shape[1], [plan, file, &merged, noted] {
    if (plan.codes) return quant::bytes_of_parts(plan.spec, quant::codes_of(*plan.codes, plan.format));
    const Tensor values = merged.exact(file);
    const ops::Matrix codes = quant::coded(values, plan.format, plan.compute);
    if (!std::exchange(*noted, true)) merged.note(file, values, ops::decoded(codes, at::kFloat));
    return quant::bytes_of_parts(plan.spec, quant::codes_of(codes, plan.format));
  });
}

std::vector<weights::OutTensor> SavedCodes::heads(const MergedWeights& merged) const {
  std::vector<weights::OutTensor> out;
  for (const auto& [plan, file] : heads_) std::ranges::move(coded(plan, file, merged), std::back_inserter(out));
  return out;
}

std::vector<weights::OutTensor> SavedCodes::of(const FileTensor& file, const MergedWeights& merged,
                                               at::ScalarType type) const {
  std::vector<weights::OutTensor> out;
  if (const auto found = plans_.find(file.name); found != plans_.end()) return coded(found->second, file, merged);
  if (const auto found = blocks_.find(file.name); found != blocks_.end()) {
    const BlocksPlan& plan = found->second;
    return quant::blocks_of_stack(plan.name, plan.shape, [plan](int64_t expert) { return block_bytes(plan, expert); });
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
