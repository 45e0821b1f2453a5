// Recorded cases of adapters on a small llama: lora_targets. Which layers are adapted, the shapes of their parameters,
// and what they compute.
#include <ATen/ops/randn.h>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/models/adapter.h"
#include "easydel/models/lora_targets.h"
#include "easydel/models/model.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

namespace fs = std::filesystem;

constexpr const char* config_json =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64,
    "max_position_embeddings": 64, "tie_word_embeddings": false})";

// A model with random weights, and an adapter with random values on every layer that `pattern` finds.
std::shared_ptr<models::Model> adapted_model(const std::string& pattern, int64_t rank) {
  struct Folder {
    fs::path path = files::make_temporary_folder("easydel-lora");
    ~Folder() { files::remove_all(path); }
  } folder;
  files::write(folder.path / "config.json", config_json);
  models::LoadOptions load;
  models::AdapterOptions adapter;
  adapter.config.r = rank;
  adapter.config.alpha = double(rank);  // no scale
  adapter.config.target_modules = ".*(?:" + pattern + ").*";
  adapter.config.exclude_modules = ".*embed_tokens";  // linear layers alone
  load.adapters = {adapter};
  return models::load_model(folder.path, load);
}

bool is_close(const Tensor& one, const Tensor& other) { return one.allclose(other, 1e-5, 1e-5); }

// The keys of a case that upstream's functions recorded: split_lora_params, the forward, unwrap_lora_to_layers.
void add_values(Value& out, const std::string& pattern, int64_t rank) {
  const at::NoGradGuard no_gradient;
  const auto model = adapted_model(pattern, rank);
  models::Adapter& adapter = *model->adapters().front();
  std::map<std::string, const models::Adapter::Layer*> layers;
  for (const models::Adapter::Layer& layer : adapter.layers()) layers[layer.module] = &layer;
  const auto shape = [](const nn::Entry& entry) {  // as EasyDeL stores it: [in, out]
    Value sizes = Value::list();
    for (const int64_t size : {entry.shape[1], entry.shape[0]}) sizes.items.push_back(Value::integer(size));
    return sizes;
  };
  Value keys = Value::map();
  bool zero = true, forward = true, unwrapped = true, unchanged = true;
  for (const auto& [module, layer] : layers) {
    nn::Entry &a = layer->parts.a.entry(), &b = layer->parts.b.entry(), &base = *layer->base;
    keys.set(module + ".lora_a", shape(a));
    keys.set(module + ".lora_b", shape(b));
    zero = zero && b.shard.eq(0).all().item<bool>();
    b.shard.normal_(0, 0.1);
    b.written();
    const Tensor x = at::randn({5, base.shape[1]});
    nn::Pass pass = nn::Pass::over({0, 5});
    forward = forward && is_close(base.weight->product(x, {}, {}, pass),
                                  x.matmul(base.shard.t()) + x.matmul(a.shard.t()).matmul(b.shard.t()));
  }
  std::map<std::string, Tensor> before;
  for (const auto& [module, layer] : layers) before[module] = layer->base->shard;
  adapter.merge();
  for (const auto& [module, layer] : layers) {
    const Tensor& now = layer->base->shard;
    const Tensor product = layer->parts.b.entry().shard.matmul(layer->parts.a.entry().shard);
    unwrapped = unwrapped && is_close(now, before.at(module) + product);
    unchanged = unchanged && is_close(now, before.at(module));
  }
  const models::Adapter::Layer& first = *layers.begin()->second;
  out.set("split_keys", keys);
  out.set("b_is_zero", Value::boolean(zero));
  out.set("a_shape", shape(first.parts.a.entry()));
  out.set("b_shape", shape(first.parts.b.entry()));
  out.set("forward_equals_xW_plus_xAB", Value::boolean(forward));
  out.set("targets_after_unwrap", Value::list());
  out.set("unwrap_equals_W_plus_AB", Value::boolean(unwrapped));
  out.set("unwrap_equals_W", Value::boolean(unchanged));
}

Value targets(const VectorCase& vector, const VectorFile&) {
  const Value &pattern = needed(vector, "pattern"), &rank = needed(vector, "rank");
  const std::string text = pattern.is_null() ? ".*" : pattern.scalar;
  const auto found = models::lora_targets(*models::plan_parameters(parse_json(config_json), vector.id), text,
                                          rank.as_int().value_or(0));
  Value out = Value::map();
  out.set("targets", list_of(found));
  out.set("enabled_before", Value::boolean(false));
  out.set("enabled", Value::boolean(!found.empty()));
  const Value* const expected = needed(vector, "expect").find("ok");
  if (expected && expected->find("split_keys")) add_values(out, text, *rank.as_int());
  return out;
}

// The deviation of A's random values is that of other numbers, and of PEFT's distribution.
std::string compare(const Value& expected, const Value& got) {
  Value without = expected;
  std::erase_if(without.entries, [](const auto& entry) { return entry.first == "a_std"; });
  return difference_of(without, got, 1e-5, 1e-6);
}

}  // namespace

VectorKind lora_targets_vectors() { return {.name = "lora_targets", .answer = targets, .compare = compare}; }

}  // namespace easydel::probe
