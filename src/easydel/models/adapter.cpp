#include "easydel/models/adapter.h"

#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/base/regular_expression.h"
#include "easydel/models/adapter_names.h"
#include "easydel/models/adapter_start.h"
#include "easydel/nn/scope.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;

std::string shape_of(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return str("[", join(sizes, ", "), "]");
}

// Whether `module` is called so: the whole path, or its end after a dot.
bool is_called(const std::string& module, const std::string& name) {
  return module == name || module.ends_with("." + name);
}

// A text without a regular expression's signs is a name: PEFT would match it with whole paths only, and find nothing.
bool is_plain(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

bool found_by(const LayerNames& names, const std::string& module) {
  if (const auto* const text = std::get_if<std::string>(&names))
    return is_plain(*text) ? is_called(module, *text) : RegularExpression(*text).matches(module);
  return std::ranges::any_of(std::get<std::vector<std::string>>(names),
                             [&](const std::string& name) { return is_called(module, name); });
}

// The first index in a path that follows a name of `patterns`, or any name; -1: none.
int64_t layer_index(const std::string& module, const std::vector<std::string>& patterns) {
  std::vector<std::string> expressions;
  if (patterns.empty()) expressions.emplace_back(".*?\\.[^.]*\\.(\\d+)\\..*");
  for (const std::string& pattern : patterns) expressions.push_back("(?:|.*?\\.)(?:" + pattern + ")\\.(\\d+)\\..*");
  for (const std::string& expression : expressions)
    if (const auto groups = RegularExpression(expression).match(module)) return std::stoll(*groups->back());
  return -1;
}

const Tensor& checked(const Tensor& value, const std::string& where, const std::string& name) {
  if (!at::isfinite(value).all().item<bool>())
    refuse(where, str(name, " holds values that are not finite (NaN or infinity)"),
           "the adapter is broken; save or fetch it again");
  return value;
}

}  // namespace

Adapter::Adapter(AdapterOptions options) : options_(std::move(options)) {
  if (options_.folder.empty()) return;
  const fs::path path = options_.folder / adapter_weights_name;
  if (!files::is_file(path))
    refuse(options_.folder.string(), str("has no ", adapter_weights_name),
           files::is_file(options_.folder / "adapter_model.bin")
               ? "adapter_model.bin is not read; save the adapter with safe_serialization"
               : "give a folder that PEFT or easydel saved an adapter in");
  file_ = weights::SafetensorsFile::open(path);
  for (const std::string& name : file_->names()) unused_.insert(name);
}

bool Adapter::in_full(const std::string& path) const {
  for (const std::string& name : options_.config.modules_to_save)
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
      if (std::string_view(path).substr(0, dot).ends_with(name)) return true;
  return false;
}

bool Adapter::targets(const std::string& module, bool output) const {
  const LoraConfig& config = options_.config;
  if (config.exclude_modules && found_by(*config.exclude_modules, module)) return false;
  if (in_full(module + ".weight")) return false;
  const auto* const text = std::get_if<std::string>(&config.target_modules);
  const bool found = text && *text == all_linear ? !output : found_by(config.target_modules, module);
  if (!found || config.layers_to_transform.empty()) return found;
  const int64_t index = layer_index(module, config.layers_pattern);
  return std::ranges::find(config.layers_to_transform, index) != config.layers_to_transform.end();
}

bool Adapter::adapts(const nn::Entry& entry, const std::string& module, bool shared) const {
  const bool output = shared || (entry.head && (entry.split == nn::Split::vocabulary || is_class_head(module)));
  return targets(module, output);
}

bool Adapter::learns(const nn::Entry& entry) const {
  const bool is_product = nn::is_linear(entry) || entry.role == nn::Role::embedding;
  if (!is_product && in_full(entry.path)) return true;
  if (options_.config.bias == LoraBias::none || entry.path.find("bias") == std::string::npos) return false;
  if (options_.config.bias == LoraBias::all) return true;
  return entry.path.ends_with(".bias") && adapted_.contains(entry.path.substr(0, entry.path.size() - 5));
}

nn::Parameter Adapter::add(const nn::Scope& scope, const std::string& leaf, const std::string& file_name,
                           std::vector<int64_t> shape, nn::Role role, nn::ParameterOptions options) {
  nn::TensorSource source;
  source.tensors = {file_name};
  source.transposed = leaf.starts_with("lora_embedding_A");
  options.sources = {source};
  options.adapter = true;
  own_.insert((scope / leaf).path());
  return scope.parameter(leaf, std::move(shape), role, options);
}

std::shared_ptr<nn::Weight> Adapter::linear(const nn::Scope& scope, nn::Entry& entry,
                                            std::shared_ptr<nn::Weight> weight, bool shared) {
  Layer layer{.module = shared ? scope.path() : nn::layer_name(entry), .base = &entry, .shared = shared};
  seen_.insert(layer.module);
  // PEFT saves the weight of an adapted output layer; a shared one is the embedding's.
  // Beside a grown embedding it saves all of them twice.
  if (shared)
    for (const char* const name : {".base_layer.weight", ".weight", ".token_adapter.base_layer.weight"})
      unused_.erase(str(peft_prefix, layer.module, name));
  if (in_full(layer.module + ".weight")) return replace(scope, entry, std::move(weight), std::move(layer));
  if (adapts(entry, layer.module, shared)) {
    if (adapt_parameter(scope, entry, weight, layer) != weight)
      refuse(options_.where, str("target_modules and target_parameters both name ", layer.module),
             "leave it out of one of them");
    return adapt(scope, entry, std::move(weight), std::move(layer));
  }
  weight = with_rows(scope, entry, std::move(weight), layer);
  return adapt_parameter(scope, entry, std::move(weight), std::move(layer));
}

std::shared_ptr<nn::Weight> Adapter::embedding(const nn::Scope& scope, nn::Entry& entry,
                                               std::shared_ptr<nn::Weight> weight) {
  Layer layer{.module = nn::layer_name(entry), .base = &entry, .embedding = true};
  seen_.insert(layer.module);
  if (in_full(entry.path)) return replace(scope, entry, std::move(weight), std::move(layer));
  const auto* const text = std::get_if<std::string>(&options_.config.target_modules);
  if ((text && *text == all_linear) || !targets(layer.module, false))
    return with_rows(scope, entry, std::move(weight), std::move(layer));
  return adapt(scope, entry, std::move(weight), std::move(layer));
}

std::shared_ptr<nn::Weight> Adapter::adapt(const nn::Scope& scope, nn::Entry& entry, std::shared_ptr<nn::Weight> weight,
                                           Layer layer) {
  const LoraConfig& config = options_.config;
  const std::string module = layer.by_parameter ? name_in_peft(layer.module) : layer.module;
  // What rank_pattern and alpha_pattern match.
  const std::string key = layer.by_parameter ? module + ".weight" : module;
  const int64_t rank = config.rank_of(key), out = entry.shape[0], in = entry.shape[1];
  const std::string file = str(peft_prefix, module, "."), name = "." + options_.name;
  const auto not_built = [&](const char* what) {
    refuse(options_.where, str(what, " is not built yet (", layer.module, ")"),
           "leave the layer out of target_modules, or train plain LoRA");
  };
  const bool by_output = entry.split == nn::Split::output, by_input = entry.split == nn::Split::input;
  const bool divided = entry.use == nn::Use::part;
  if (!trained_rows(layer, layer.embedding).empty())
    refuse(options_.where,
           str(options_.added.empty() ? "trainable_token_indices" : "added_tokens", " and target_modules both name ",
               layer.module),
           "train its rows, or adapt it");
  if (config.lora_bias && (layer.embedding || layer.shared || entry.split == nn::Split::vocabulary))
    not_built("lora_bias on an embedding or an output layer");
  if ((config.use_dora || config.lora_bias) && divided && by_input)
    not_built("DoRA or lora_bias on a layer whose input is cut over the tensor axis");
  if (rank > std::min(in, out))
    log::warning(options_.where, ": r is ", rank, ", and ", layer.module, " is only ", out, " x ", in,
                 "; a rank above the smaller side learns nothing more");
  using nn::Initial;
  const LoraInit start = config.init_lora_weights.kind;
  if (config.init_lora_weights.changes_base() && (layer.embedding || layer.shared))
    not_built(layer.embedding ? "init_lora_weights: pissa, olora or loftq on an embedding"
                              : "init_lora_weights: pissa, olora or loftq on an output layer that reads the embedding");
  const bool random = start == LoraInit::random;
  const Initial as_linear = Initial::uniform(1 / std::sqrt(double(in))),
                by_rank = Initial::uniform(1 / std::sqrt(double(rank)));
  nn::ParameterOptions a, b;
  if (layer.embedding) {
    a.initial = random ? Initial::normal(1) : Initial::zeros();
    b.initial = Initial::normal(1);
  } else {
    a.initial = start == LoraInit::gaussian ? Initial::normal(1 / double(rank)) : as_linear;
    b.initial = random ? by_rank : Initial::zeros();
    if (by_input) a.split = entry.split;
    if (by_output || entry.split == nn::Split::vocabulary) b.split = entry.split;
    if (divided) {
      (by_input ? a : b).use = nn::Use::part;
      (by_input ? a : b).use_dimension = by_input ? 1 : 0;
      (by_input ? b : a).use = nn::Use::shared;
    }
  }
  b.rate = config.lora_plus_ratio.value_or(1);
  nn::LowRank& parts = layer.parts;
  parts.scale = config.scale_of(key) * options_.weight;
  parts.dropout = layer.embedding ? 0 : config.dropout;
  parts.path = layer.module;
  if (layer.embedding) {
    parts.a = add(scope, "lora_embedding_A" + name, file + "lora_embedding_A", {out, rank}, nn::Role::weight, a);
    parts.b = add(scope, "lora_embedding_B" + name, file + "lora_embedding_B", {in, rank}, nn::Role::weight, b);
  } else {
    parts.a = add(scope, "lora_A" + name + ".weight", file + "lora_A.weight", {rank, in}, nn::Role::weight, a);
    parts.b = add(scope, "lora_B" + name + ".weight", file + "lora_B.weight", {out, rank}, nn::Role::weight, b);
  }
  // Of an embedding, the lengths are those of its columns.
  nn::ParameterOptions of_rows{.split = by_output ? entry.split : nn::Split::none,
                               .use = divided && by_output ? nn::Use::part : nn::Use::whole};
  if (config.lora_bias) {
    of_rows.initial = random ? by_rank : Initial::zeros();
    of_rows.rate = b.rate;
    parts.bias = add(scope, "lora_B" + name + ".bias", file + "lora_B.bias", {out}, nn::Role::bias, of_rows);
  }
  if (config.use_dora) {
    of_rows.rate = 1;
    parts.magnitude = add(scope, "lora_magnitude_vector" + name, file + "lora_magnitude_vector",
                          {layer.embedding ? in : out}, nn::Role::other, of_rows);
    if (!file_) start_lengths(entry, *weight, layer);
  }
  adapted_.insert(key);
  layers_.push_back(layer);
  const auto& state = layer.shared ? shared_state_ : state_;
  return nn::adapted_weight(std::move(weight), nn::Parameter(&entry), parts, layer.embedding, state);
}

// The lengths of the rows as they are, so that nothing changes in the beginning.
void Adapter::start_lengths(nn::Entry& entry, const nn::Weight& weight, Layer& layer) const {
  nn::Entry& magnitude = layer.parts.magnitude.entry();
  if (!magnitude.shard.defined()) return;  // a model without values
  const auto whole = [](const nn::Entry& of) { return of.team->whole(of.shard.detach(), of.layout); };
  const Tensor base = entry.shard.defined() ? whole(entry) : weight.values();
  const Tensor a = whole(layer.parts.a.entry());
  const Tensor lengths = nn::row_lengths(layer.embedding ? base.t() : base, layer.embedding ? a.t() : a,
                                         whole(layer.parts.b.entry()), layer.parts.scale);
  const at::NoGradGuard no_gradient;
  magnitude.shard.copy_(magnitude.team->cut(lengths, magnitude.layout));
}

// A weight of its own, which starts as the base's.
std::shared_ptr<nn::Weight> Adapter::replace(const nn::Scope& scope, nn::Entry& entry,
                                             std::shared_ptr<nn::Weight> weight, Layer layer) {
  nn::ParameterOptions options{.split = entry.split, .use = entry.use, .use_dimension = entry.use_dimension};
  const nn::Role role = layer.shared ? nn::Role::weight : entry.role;
  layer.own = add(scope, str("modules_to_save.", options_.name, ".weight"), str(peft_prefix, layer.module, ".weight"),
                  entry.shape, role, options);
  nn::Entry& own = layer.own.entry();
  if (!file_ && own.shard.defined()) {
    if (!entry.shard.defined())
      refuse(options_.where, str("training ", layer.module, " in full is not built yet, as its weight is in codes"),
             "leave it out of modules_to_save, or out of quantization.model");
    const at::NoGradGuard no_gradient;
    own.shard.copy_(entry.shard);
  }
  layers_.push_back(layer);
  return nn::replaced_weight(std::move(weight), own.weight, layer.shared ? shared_state_ : state_);
}

namespace {

// The file's tensor as the parameter has it.
Tensor from_file(const weights::SafetensorsFile& file, const nn::TensorSource& source) {
  const std::string& name = source.tensors.front();
  return checked(source.part_of(tensor::from_view(file.at(name))), file.path().string(), name);
}

}  // namespace

void Adapter::match(const nn::Entry& entry) {
  if (!file_) return;
  const std::string& name = entry.source.tensors.front();
  unused_.erase(name);
  if (!file_->has(name)) return missing_.push_back(name);
  const std::vector<int64_t> needed = entry.source.file_shape(entry.shape), held = file_->at(name).shape;
  if (held != needed) misshapen_.push_back(str(name, " is ", shape_of(held), "; the model needs ", shape_of(needed)));
}

void Adapter::fill(nn::Entry& entry, const std::function<Tensor()>& initial) {
  match(entry);
  const std::string& name = entry.source.tensors.front();
  const bool fits = file_ && file_->has(name) && file_->at(name).shape == entry.source.file_shape(entry.shape);
  const auto first = first_values_.extract(entry.path);
  if (!fits && first.empty()) return void(entry.shard = initial());
  const Tensor whole = fits ? from_file(*file_, entry.source).to(at::kFloat) : first.mapped();
  entry.shard = entry.team->cut(whole, entry.layout).clone(at::MemoryFormat::Contiguous);
}

std::string Adapter::match_base(const nn::Entry& entry) {
  const size_t dot = entry.path.rfind('.');
  if (!file_ || entry.source.stacked || dot == std::string::npos) return {};
  // A part of a layer that is trained in full, or of one that is adapted: a bias, or an embedding's own values, which
  // PEFT saves with its adapter.
  const std::string module = entry.path.substr(0, dot), leaf = entry.path.substr(dot);
  const bool is_product = nn::is_linear(entry) || entry.role == nn::Role::embedding;
  if (is_product && in_full(entry.path)) return {};  // it is read by a weight of its own
  for (const std::string& name : {str(peft_prefix, module, ".base_layer", leaf), str(peft_prefix, entry.path),
                                  str(peft_prefix, module, ".token_adapter.base_layer", leaf)}) {
    if (!file_->has(name)) continue;
    unused_.erase(name);
    const std::vector<int64_t> held = file_->at(name).shape, needed = entry.source.file_shape(entry.shape);
    if (held == needed) return name;
    misshapen_.push_back(str(name, " is ", shape_of(held), "; the model needs ", shape_of(needed)));
  }
  return {};
}

void Adapter::fill_base(nn::Entry& entry) {
  const std::string name = match_base(entry);
  if (name.empty()) return;
  nn::TensorSource source = entry.source;
  source.tensors = {name};
  const Tensor own = entry.team->cut(from_file(*file_, source).to(entry.shard.scalar_type()), entry.layout);
  if (own.equal(entry.shard)) return;
  held_of_base_[&entry] = name;
  originals_[&entry] = entry.shard;
  entry.shard = own.clone(at::MemoryFormat::Contiguous);
}

void Adapter::start_base(nn::Entry& entry) {
  const LoraConfig& config = options_.config;
  if (!config.init_lora_weights.changes_base() || !nn::is_linear(entry)) return;
  const std::string module = nn::layer_name(entry);
  if (!adapts(entry, module, /*shared=*/false) || originals_.contains(&entry)) return;
  if (!entry.shard.defined())
    refuse(
        options_.where,
        str("init_lora_weights: ", config::Codec<LoraStart>::write(config.init_lora_weights).scalar,
            " starts from the values of a weight, and ", module, " is in codes"),
        "give the unquantized model (with quantization.model it becomes codes after the start), or start by default");
  const LowRankStart start = low_rank_start(config, module, entry.team->whole(entry.shard.detach(), entry.layout));
  first_values_[module + ".lora_A." + options_.name + ".weight"] = start.a;
  first_values_[module + ".lora_B." + options_.name + ".weight"] = start.b;
  originals_[&entry] = entry.shard;
  entry.shard =
      entry.team->cut(start.base.to(entry.shard.scalar_type()), entry.layout).clone(at::MemoryFormat::Contiguous);
}

Tensor Adapter::original(const nn::Entry& entry) const {
  const auto found = originals_.find(&entry);
  return found == originals_.end() ? Tensor() : found->second;
}

void Adapter::finish() const {
  check_names_of_parts();
  const std::vector<std::string> known(seen_.begin(), seen_.end());
  std::set<std::string> leaves;
  for (const std::string& module : known) leaves.insert(module.substr(module.rfind('.') + 1));
  const std::vector<std::string> names(leaves.begin(), leaves.end());
  const LoraConfig& config = options_.config;
  if (layers_.empty() && config.modules_to_save.empty())
    refuse(options_.where + (file_ ? "" : ".target_modules"), "finds no layer of this model",
           str("its layers are called ", join(names, ", ")));
  if (!file_) {
    for (const auto& [key, patterns] :
         {std::pair{"rank_pattern", &config.rank_pattern}, std::pair{"alpha_pattern", &config.alpha_pattern}})
      for (const auto& [pattern, value] : patterns->entries)
        if (std::ranges::none_of(adapted_, [&](const std::string& module) {
              return RegularExpression("(?:.*\\.)?(?:" + pattern + ")").matches(module);
            }))
          refuse(str(options_.where, ".", key), str("'", pattern, "' finds no adapted layer"),
                 str("give the end of a layer's path, such as ",
                     adapted_.empty() ? std::string("q_proj") : *adapted_.begin()));
    if (const auto* const list = std::get_if<std::vector<std::string>>(&config.target_modules))
      for (const std::string& name : *list)
        if (std::ranges::none_of(known, [&](const std::string& module) { return is_called(module, name); }))
          log::warning(options_.where, ".target_modules: no layer is called '", name, "'; ", did_you_mean(name, names));
    return;
  }
  const std::string where = (options_.folder / adapter_weights_name).string();
  const std::vector<std::string> extra(unused_.begin(), unused_.end());
  const std::string other = "the adapter was made for another model or with another configuration";
  if (!misshapen_.empty())
    refuse(where, str(misshapen_.front(), misshapen_.size() > 1 ? str(", and ", misshapen_.size() - 1, " more") : ""),
           other);
  if (!missing_.empty()) {
    const std::string near = nearest(missing_.front(), extra);
    refuse(where,
           str("has no ", missing_.front(), missing_.size() > 1 ? str(", and ", missing_.size() - 1, " more") : ""),
           near.empty() ? other : "it has " + near);
  }
  if (!extra.empty())
    refuse(where,
           str("has ", extra.front(), extra.size() > 1 ? str(" and ", extra.size() - 1, " more tensors") : "",
               ", which the model has no place for"),
           other);
}

}  // namespace easydel::models
