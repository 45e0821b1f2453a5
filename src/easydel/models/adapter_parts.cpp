// What adapters change besides linear layers: single rows of an embedding, and stacked experts.
#include <algorithm>
#include <cmath>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/models/adapter.h"
#include "easydel/models/adapter_names.h"
#include "easydel/models/checkpoint.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/nn/scope.h"
#include "easydel/weights/safetensors.h"

namespace easydel::models {

int64_t read_vocabulary(const Value& config) {
  const Value* const size = config.find("vocab_size");
  return size ? size->as_int().value_or(0) : 0;
}

int64_t needed_vocabulary(const std::vector<AdapterOptions>& adapters, const Value& config, const Where& where) {
  const int64_t has = read_vocabulary(config);
  if (has == 0 || adapters.empty()) return 0;
  std::vector<std::string> layers;  // embeddings and output layers
  plan_parameters(config, where, [&](const nn::Entry& entry, const std::vector<nn::TensorSource>&) {
    if (entry.split == nn::Split::vocabulary && entry.shape.size() == 2 && entry.shape[0] == has)
      layers.push_back(nn::layer_name(entry));
  });
  int64_t needed = 0;
  for (const AdapterOptions& adapter : adapters) {
    if (!adapter.added.empty() && adapter.added.front() > has)
      refuse(
          adapter.where + ".added_tokens",
          str("the tokenizer has ", adapter.added.front(), " tokens already, and the model's embedding ", has, " rows"),
          "give the tokenizer of the model");
    if (!adapter.added.empty()) needed = std::max(needed, adapter.added.back() + 1);
    if (adapter.folder.empty() || !files::is_file(adapter.folder / adapter_weights_name)) continue;
    const auto file = weights::SafetensorsFile::open(adapter.folder / adapter_weights_name);
    int64_t held = 0;
    std::set<int64_t> rows;
    for (const std::string& layer : layers) {
      for (const char* const ending : {".weight", ".base_layer.weight", ".token_adapter.base_layer.weight"})
        if (const std::string name = str(peft_prefix, layer, ending);
            file->has(name) && file->at(name).shape.size() == 2)
          held = std::max(held, file->at(name).shape[0]);
      for (const int64_t id : adapter.config.token_rows(layer, layer == layers.front()))
        if (id >= has) rows.insert(id);
    }
    // Rows of new tokens alone: they follow each other.
    if (!rows.empty() && *rows.rbegin() >= held && *rows.rbegin() - has + 1 != int64_t(rows.size()))
      refuse(adapter.where + ": trainable_token_indices",
             str(*rows.rbegin(), " is not a row of the model, which has ", has, ", and the adapter lacks rows between"),
             "give the model that the adapter was trained over");
    needed = std::max({needed, held, rows.empty() ? 0 : *rows.rbegin() + 1});
  }
  return needed;
}

std::vector<int64_t> Adapter::trained_rows(const Layer& layer, bool first) const {
  std::vector<int64_t> ids = options_.config.token_rows(layer.module, first);
  const bool head = layer.base->head && layer.base->split == nn::Split::vocabulary && !layer.embedding;
  // A shared output layer without rows of its own reads the embedding's.
  if (layer.embedding ? !first : layer.shared ? ids.empty() : !head) return ids;
  for (const int64_t id : options_.added)
    if (std::ranges::count(ids, id) == 0) ids.push_back(id);
  return ids;
}

std::shared_ptr<nn::Weight> Adapter::with_rows(const nn::Scope& scope, nn::Entry& entry,
                                               std::shared_ptr<nn::Weight> weight, Layer layer) {
  const bool first = layer.embedding && std::ranges::none_of(layers_, [](const Layer& other) {
                       return other.embedding && !other.rows.empty();
                     });
  std::vector<int64_t> ids = trained_rows(layer, first);
  // An output layer that reads the embedding reads its trained rows, too.
  const auto embedding = std::ranges::find_if(
      layers_, [&](const Layer& other) { return layer.shared && other.base == &entry && !other.rows.empty(); });
  const std::string delta = ".token_adapter.trainable_tokens_delta";
  if (embedding != layers_.end() && (ids.empty() || ids == embedding->rows)) {
    unused_.erase(str(peft_prefix, layer.module, delta));  // PEFT may save the shared rows twice
    return nn::adapted_weight(std::move(weight),
                              nn::rows_adapter(nn::Parameter(&entry), embedding->rows, embedding->row_values), state_);
  }
  if (ids.empty()) return weight;
  const auto outside = std::ranges::find_if(ids, [&](int64_t id) { return id >= entry.shape[0]; });
  if (outside != ids.end())
    refuse(options_.where + ".trainable_token_indices",
           str(*outside, " is not a row of ", layer.module, ", which has ", entry.shape[0]), "give ids of its tokens");
  layer.row_values = add(scope, delta.substr(1) + "." + options_.name, str(peft_prefix, layer.module, delta),
                         {int64_t(ids.size()), entry.shape[1]}, nn::Role::embedding, {});
  nn::Entry& values = layer.row_values.entry();
  if (!file_ && values.shard.defined()) {
    if (!entry.shard.defined())
      refuse(options_.where, str("training rows of ", layer.module, " is not built yet, as it is in codes"),
             "leave the layer out of quantization.model");
    const at::NoGradGuard no_gradient;
    const Tensor whole = entry.team->whole(entry.shard.detach(), entry.layout).to(at::kFloat);
    Tensor rows = values.team->whole(values.shard, values.layout).clone();
    const std::vector<int64_t>& added = options_.added;
    const Tensor mean = added.empty() ? Tensor() : mean_of_rows(whole, added.front());
    for (size_t i = 0; i < ids.size(); ++i)
      rows.select(0, int64_t(i)).copy_(std::ranges::count(added, ids[i]) > 0 ? mean : whole.select(0, ids[i]));
    if (!added.empty() && layer.embedding && entry.team->first())
      log::info(options_.where, ".added_tokens: ", counted(int64_t(added.size()), "new token"), ", ids from ",
                added.front(), " to ", added.back(), "; their rows start as the mean of the ", added.front(),
                " before them");
    values.shard.copy_(values.team->cut(rows, values.layout));
  }
  layer.rows = ids;
  layers_.push_back(layer);
  const auto& state = layer.shared ? shared_state_ : state_;
  return nn::adapted_weight(std::move(weight),
                            nn::rows_adapter(nn::Parameter(&entry), std::move(ids), layer.row_values), state);
}

namespace {

// transformers' name of the parameter that holds a stack: gate and up are one. `module`: the path of the experts.
struct StackName {
  std::string module, parameter;
  std::string whole() const { return module + "." + parameter; }
};
StackName name_of_stack(const nn::Entry& entry, bool gated) {
  const std::string layer = nn::layer_name(entry);  // "model.layers.0.mlp.experts.gate_proj"
  const size_t dot = layer.rfind('.');
  const std::string module = name_in_peft(layer.substr(0, dot)), leaf = layer.substr(dot + 1);
  return {module, leaf == "gate_proj" || (leaf == "up_proj" && gated) ? "gate_up_proj" : leaf};
}

bool is_named(const std::vector<std::string>& names, const std::string& whole) {
  return std::ranges::any_of(names,
                             [&](const std::string& name) { return whole == name || whole.ends_with("." + name); });
}

}  // namespace

std::shared_ptr<nn::WeightStack> Adapter::experts(const nn::Scope& scope, nn::Entry& entry,
                                                  std::shared_ptr<nn::WeightStack> weight) {
  const std::string path = nn::layer_name(entry);
  const bool up = path.ends_with(".up_proj");
  const bool gated = path.ends_with(".gate_proj") || (up && parameters_.contains(name_of_stack(entry, true).whole()));
  const StackName name = name_of_stack(entry, gated);
  parameters_.insert(name.whole());
  const LoraConfig& config = options_.config;
  const std::vector<std::string> named = config.target_parameters.value_or(std::vector<std::string>{});
  if (!is_named(named, name.whole())) return weight;
  const auto not_built = [&](const std::string& what) {
    refuse(options_.where, str(what, " is not built yet (", name.whole(), ")"),
           "leave it out of target_parameters, or train plain LoRA");
  };
  if (config.init_lora_weights.changes_base()) not_built("init_lora_weights: pissa, olora or loftq on stacked experts");
  if (scope.team().mesh().ranks() > 1) not_built("an adapter of stacked experts on several ranks");
  const int64_t experts = entry.shape[0], out = entry.shape[1], in = entry.shape[2];
  const int64_t rank = config.rank_of(name.whole());
  Layer layer{.module = path, .base = &entry};
  nn::ExpertFactors& stack = layer.stack;
  stack.experts = experts;
  stack.rows = out;
  stack.scale = config.scale_of(name.whole()) * options_.weight;
  const bool interleaved = entry.source.step == 2, second = gated && up;
  stack.step = gated && interleaved ? 2 : 1;
  stack.first = !second ? 0 : interleaved ? 1 : out;
  if (second) {
    const auto gate = std::ranges::find(layers_, path.substr(0, path.size() - 8) + ".gate_proj", &Layer::module);
    check(gate != layers_.end(), "adapter: no gate of ", path);
    stack.a = gate->stack.a, stack.b = gate->stack.b;
  } else {
    // PEFT wraps a module once for each of its parameters: the last one is outside.
    const bool inside = name.parameter != "down_proj" && is_named(named, name.module + ".down_proj");
    const std::string file = str(peft_prefix, name.module, inside ? ".base_layer." : ".");
    const int64_t all = gated ? 2 * out : out;
    using nn::Initial;
    const LoraInit start = config.init_lora_weights.kind;
    nn::ParameterOptions a, b;
    a.initial =
        start == LoraInit::gaussian ? Initial::normal(1 / double(rank)) : Initial::uniform(1 / std::sqrt(double(in)));
    b.initial = start == LoraInit::random ? Initial::uniform(1 / std::sqrt(double(rank * experts))) : Initial::zeros();
    b.rate = config.lora_plus_ratio.value_or(1);
    const std::string ending = "." + options_.name + ".weight";
    stack.a = add(scope, "lora_A" + ending, file + "lora_A.weight", {experts * rank, in}, nn::Role::weight, a);
    stack.b = add(scope, "lora_B" + ending, file + "lora_B.weight", {all, rank * experts}, nn::Role::weight, b);
  }
  adapted_.insert(name.whole());
  layers_.push_back(layer);
  return nn::adapted_stack(std::move(weight), stack, state_);
}

std::shared_ptr<nn::Weight> Adapter::router(const nn::Scope& scope, nn::Entry& entry,
                                            std::shared_ptr<nn::Weight> weight) {
  return adapt_parameter(scope, entry, std::move(weight), {.module = nn::layer_name(entry), .base = &entry});
}

std::shared_ptr<nn::Weight> Adapter::adapt_parameter(const nn::Scope& scope, nn::Entry& entry,
                                                     std::shared_ptr<nn::Weight> weight, Layer layer) {
  const std::string name = name_in_peft(layer.module) + ".weight";
  parameters_.insert(name);
  const LoraConfig& config = options_.config;
  if (!is_named(config.target_parameters.value_or(std::vector<std::string>{}), name)) return weight;
  const auto not_built = [&](const std::string& what) {
    refuse(options_.where, str(what, " is not built yet (", name, ")"),
           "leave it out of target_parameters, or name the layer in target_modules");
  };
  if (config.init_lora_weights.changes_base())
    not_built("init_lora_weights: pissa, olora or loftq on target_parameters");
  if (entry.source.transposed) not_built("target_parameters with a weight that is stored transposed");
  if (layer.shared) not_built("target_parameters with the weight of an output layer that reads the embedding");
  if (scope.team().mesh().ranks() > 1) not_built("target_parameters on several ranks");
  layer.by_parameter = true;
  return adapt(scope, entry, std::move(weight), std::move(layer));
}

void Adapter::check_names_of_parts() const {
  const LoraConfig& config = options_.config;
  const std::string dot = file_ ? ": " : ".";
  for (const std::string& name : config.target_parameters.value_or(std::vector<std::string>{})) {
    if (std::ranges::any_of(parameters_, [&](const std::string& whole) { return is_named({name}, whole); })) continue;
    std::vector<std::string> leaves;
    for (const std::string& whole : parameters_) {
      const size_t leaf = whole.rfind('.'), module = whole.rfind('.', leaf - 1);
      leaves.push_back(whole.substr(module + 1));
    }
    std::ranges::sort(leaves);
    leaves.erase(std::ranges::unique(leaves).begin(), leaves.end());
    refuse(options_.where + dot + "target_parameters",
           str("'", name, "' finds no weight of a linear layer, a router or stacked experts"),
           "known: " + join(leaves, ", "));
  }
  for (const std::string& name : config.token_layers())
    if (std::ranges::none_of(layers_, [&](const Layer& layer) {
          return !layer.rows.empty() && (layer.module == name || layer.module.ends_with("." + name));
        }))
      refuse(options_.where + dot + "trainable_token_indices", str("'", name, "' is not an embedding or output layer"),
             "for example: embed_tokens, lm_head");
}

}  // namespace easydel::models
