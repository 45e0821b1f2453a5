// Gemma 4, text: Gemma 3 with an extra input for each layer, heads of two sizes, last layers that reuse the keys and
// values of earlier ones, and in some models experts in parallel with each mlp.
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"
#include "easydel/models/gemma_parts.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::gemma4_text {
namespace {

using nn::Pass;
using nn::Scope;

// What the blocks and the boundary share.
struct Plan {
  DecoderSpec spec;
  int64_t input = 0, input_rows = 0;  // of the additional inputs of each layer
  bool keys_as_values = false;        // in layers of full attention
  std::vector<bool> sliding;
  std::optional<GemmaRow> row;
  std::optional<nn::MoeSpec> experts;  // in parallel with each mlp
};

// Experts that read the input of a block's feed-forward before its norm; the router has its own norm and scale.
class Mixture {
 public:
  Mixture(const Scope& block, const DecoderSpec& spec, const nn::MoeSpec& experts)
      : spec_(experts.router),
        root_(std::pow(double(spec.hidden), -0.5)),
        choosing_(block / "router" / "norm", spec.hidden, without_weight(spec)),
        logits_(block / "router" / "proj", spec.hidden, spec_.experts, {.deviation = spec.deviation}),
        experts_(block, experts.experts),
        after_mlp_(block / "post_feedforward_layernorm_1", spec.hidden, spec.norm),
        after_(block / "post_feedforward_layernorm_2", spec.hidden, spec.norm),
        before_(block / "pre_feedforward_layernorm_2", spec.hidden, spec.norm) {
    const auto ones = [&](const char* name, int64_t size) {
      return (block / "router").parameter(name, {size}, nn::Role::other, {.initial = nn::Initial::ones()});
    };
    scale_ = ones("scale", spec.hidden);
    of_expert_ = ones("per_expert_scale", spec_.experts);
  }

  // x [tokens, hidden] and the mlp's output -> the sum of both parts, and the layer's extras.
  nn::LayerOutput operator()(const Tensor& x, const Tensor& fed, Pass& pass) const {
    const Tensor seen = choosing_(x) * scale_.value().to(x.scalar_type()) * root_;
    const Tensor logits = logits_(seen, pass, "moe_router_logits");
    const ops::Routing routing = ops::route(logits, spec_);
    const Tensor scales = of_expert_.value().to(at::kFloat).index_select(0, routing.indices.flatten());
    const Tensor expert_output =
        experts_(before_(x), routing.indices, routing.weights * scales.view(routing.weights.sizes()), pass);
    nn::LayerOutput out{after_mlp_(fed) + after_(pass.name("moe_expert_output", expert_output)), {}};
    out.extras["router_logits"] = logits;
    if (pass.requests("expert_tokens"))
      out.extras["expert_tokens"] = ops::tokens_of_experts(routing.indices, spec_.experts);
    return out;
  }
  double idle_elements() const { return experts_.idle_elements(spec_.top_k); }

 private:
  static nn::Norm::Options without_weight(const DecoderSpec& spec) {
    nn::Norm::Options options = spec.norm;
    options.weight = false;
    return options;
  }

  ops::RouterSpec spec_;
  double root_;
  nn::Norm choosing_;
  nn::Linear logits_;
  nn::Experts experts_;
  nn::Norm after_mlp_, after_, before_;
  nn::Parameter scale_, of_expert_;
};

class Block final : public nn::Layer {
 public:
  Block(const Scope& scope, std::shared_ptr<const Plan> plan, int64_t layer) : plan_(std::move(plan)), layer_(layer) {
    const DecoderSpec& spec = plan_->spec;
    const auto norm = [&](std::optional<nn::Norm>& place, const char* name) {
      place.emplace(scope / name, spec.hidden, spec.norm);
    };
    norm(before_mixer_, "input_layernorm");
    attention_.emplace(scope / "self_attn", spec, layer, plan_->row->source(layer),
                       plan_->keys_as_values && !plan_->sliding[size_t(layer)]);
    norm(after_mixer_, "post_attention_layernorm");
    norm(before_feed_, "pre_feedforward_layernorm");
    feed_ = build_feed(scope / "mlp", spec, layer);
    norm(after_feed_, "post_feedforward_layernorm");
    if (plan_->experts) mixture_.emplace(scope, spec, *plan_->experts);
    if (plan_->input > 0) gate_.emplace(scope, spec, plan_->input);
    scalar_ =
        scope.parameter("layer_scalar", {1}, nn::Role::other, {.initial = nn::Initial::ones(), .trainable = false});
  }

  nn::LayerOutput forward(const Tensor& x, Pass& pass) const override {
    const GemmaRow::Parts parts = plan_->row->take(layer_, x);
    Tensor own;
    const Tensor mixed = (*attention_)((*before_mixer_)(parts.hidden.contiguous()), pass, parts.stored,
                                       plan_->row->keeps(layer_) ? &own : nullptr);
    Tensor hidden = parts.hidden + (*after_mixer_)(pass.name("self_attn", mixed));
    nn::LayerOutput fed{pass.name("mlp", feed_->forward((*before_feed_)(hidden), pass).x), {}};
    if (mixture_) fed = (*mixture_)(hidden, fed.x, pass);
    hidden = hidden + (*after_feed_)(fed.x);
    if (gate_) hidden = hidden + (*gate_)(hidden, parts.input, pass);
    return {plan_->row->join(layer_, parts, hidden * scalar_.value().to(hidden.scalar_type()), own),
            std::move(fed.extras)};
  }

  nn::CacheLayer cache() const override { return attention_->cache(); }
  double mixing_flops(int64_t length) const override { return attention_->mixing_flops(length); }
  double idle_elements() const override { return mixture_ ? mixture_->idle_elements() : 0.0; }

 private:
  std::shared_ptr<const Plan> plan_;
  int64_t layer_;
  std::optional<nn::Norm> before_mixer_, after_mixer_, before_feed_, after_feed_;
  std::optional<GemmaAttention> attention_;
  std::unique_ptr<nn::Layer> feed_;
  std::optional<Mixture> mixture_;
  std::optional<GemmaInputGate> gate_;
  nn::Parameter scalar_;
};

class Boundary final : public StackBoundary {
 public:
  Boundary(const Scope& base, std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {
    if (plan_->input > 0) inputs_.emplace(base, plan_->spec, plan_->input_rows, plan_->input);
  }
  Tensor enter(const Inputs& inputs, const Tensor& embedded, Pass& pass) const override {
    return inputs_ ? at::cat({embedded, (*inputs_)(inputs.tokens, embedded, pass)}, 1) : embedded;
  }
  Tensor leave(const Tensor& x, Pass&) const override { return x.narrow(1, 0, plan_->spec.hidden).contiguous(); }

 private:
  std::shared_ptr<const Plan> plan_;
  std::optional<GemmaInputs> inputs_;
};

// The sizes of layers of full attention: per_layer_config, else global_head_dim and num_global_key_value_heads.
void read_layer_sizes(const ConfigReader& config, Plan& plan) {
  const Value* layers = config.find("per_layer_config");
  if (!layers) {
    const int64_t head_dim = read_size(config, "global_head_dim", 512);
    const int64_t kv_heads = plan.keys_as_values ? config.integer("num_global_key_value_heads", 0) : 0;
    for (size_t i = 0; i < plan.sliding.size(); ++i)
      if (!plan.sliding[i])
        plan.spec.layers[i].sizes.head_dim = head_dim, plan.spec.layers[i].sizes.kv_heads = kv_heads;
    return;
  }
  if (!layers->is_map()) config.refuse_key("per_layer_config", "is not a mapping");
  for (const auto& [key, value] : layers->entries) {
    const Where where = config.where().below("per_layer_config").below(key);
    const auto index = std::find_if(
        plan.spec.layers.begin(), plan.spec.layers.end(),
        [&](const DecoderLayerSpec& layer) { return std::to_string(&layer - plan.spec.layers.data()) == key; });
    if (index == plan.spec.layers.end() || !value.is_map()) refuse(where, "is not the map of a layer");
    const ConfigReader own(value, where);
    for (const auto& [name, size] : value.entries) {
      if (name == "head_dim")
        index->sizes.head_dim = read_size(own, "head_dim", "head_dim", 0);
      else if (name == "num_key_value_heads")
        index->sizes.kv_heads = read_size(own, "num_key_value_heads", "num_key_value_heads", 0);
      else
        own.refuse_key(name, "is not built for one layer", "known: head_dim, num_key_value_heads");
    }
  }
}

// One table of angles for each kind of layer.
void read_ropes(const ConfigReader& config, Plan& plan) {
  std::shared_ptr<const ops::RopeSpec> ropes[2];
  for (size_t i = 0; i < plan.sliding.size(); ++i) {
    const bool sliding = plan.sliding[i];
    const int64_t head_dim = sizes_of(plan.spec, int64_t(i)).head_dim;
    auto& rope = ropes[sliding];
    if (!rope) {
      ops::RopeSpec read = config.rope_of(sliding ? "sliding_attention" : "full_attention", head_dim,
                                          plan.spec.max_positions, sliding ? 1e4 : 1e6);
      if (!sliding && !config.find("rope_parameters")) {
        read.type = ops::RopeType::proportional;
        read.angles = head_dim / 4 / 2;
      }
      rope = std::make_shared<const ops::RopeSpec>(std::move(read));
    }
    if (rope->dim != head_dim) config.refuse_key("per_layer_config", "layers of one type differ in head_dim");
    plan.spec.layers[i].rope = rope;
  }
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  const auto plan = std::make_shared<Plan>();
  plan->spec = read_decoder(config, {.vocabulary = 262144,
                                     .hidden = 2304,
                                     .intermediate = 9216,
                                     .layers = 30,
                                     .heads = 8,
                                     .kv_heads = 4,
                                     .head_dim = 256,
                                     .max_positions = 131072,
                                     .reads_layer_config = true,
                                     .rope = {.by_layer_type = true},
                                     .activation_key = "hidden_activation",
                                     .activation = "gelu_pytorch_tanh",
                                     .padding = 0,
                                     .tied = true});
  DecoderSpec& spec = plan->spec;
  spec.norm.wide = true;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.embedding_multiplier = std::sqrt(double(spec.hidden));
  spec.logit_softcap = config.number("final_logit_softcapping", 0.0);
  plan->sliding = read_sliding_layers(config, spec.layers.size(), all_but_each(6));
  plan->sliding.back() = false;  // the last layer has full attention, whatever layer_types says
  spec.causal = !config.find("use_bidirectional_attention") || config.text("use_bidirectional_attention", "") != "all";
  const int64_t window = read_window(config, 512);
  set_windows(spec, plan->sliding, spec.causal || window == 0 ? window : window / 2 + 2);
  plan->keys_as_values = config.boolean("attention_k_eq_v", false);
  read_layer_sizes(config, *plan);
  read_ropes(config, *plan);
  const int64_t sharing = config.integer("num_kv_shared_layers", 0);
  auto sources = shared_sources(config, plan->sliding, sharing);
  if (config.boolean("use_double_wide_mlp", false))
    for (size_t i = 0; i < sources.size(); ++i)
      if (sources[i] != int64_t(i)) spec.layers[i].sizes.intermediate = 2 * spec.intermediate;
  plan->input = config.integer("hidden_size_per_layer_input", config.has("hidden_size_per_layer_input") ? 0 : 256);
  plan->input_rows = read_size(config, "vocab_size_per_layer_input", 262144);
  if (config.boolean("enable_moe_block", false)) {
    plan->experts = moe_of(config, spec, needed(config, "num_experts"), needed(config, "top_k_experts"),
                           needed(config, "moe_intermediate_size"));
    plan->experts->router.normalise = true;
  }
  plan->row.emplace(spec, spec.hidden, plan->input, std::move(sources));
  return build_decoder(with_parts<Block, Boundary>(plan), building);
}

}  // namespace

Family family() { return {"gemma4_text", "model", {"rotary_emb.inv_freq"}, build, true, {}, unused_keys_and_values()}; }

}  // namespace easydel::models::zoo::gemma4_text
