// MiniMax-01 (arXiv 2501.08313): lightning attention (a recurrence whose state decays at each token) in most layers,
// softmax attention in the others, experts in all; the residual of a block is its normalized input.
#include <ATen/ops/arange.h>
#include <ATen/ops/exp.h>

#include <cmath>
#include <limits>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::minimax {
namespace {

using nn::Pass;
using nn::Scope;

// Tables that checkpoints contain although they follow from the configuration. Only the slopes are read: the others are
// what transformers computes blocks of tokens with, where here tokens follow one another.
struct Decay {
  nn::Parameter slope, query, key, diagonal;  // [heads, 1, 1], twice [heads, block, 1], [1, heads, block, block]

  Decay(const Scope& scope, int64_t heads, int64_t block, int64_t layer, int64_t layers) {
    const auto table = [&](const char* name, std::vector<int64_t> shape) {
      return scope.parameter(name, std::move(shape), nn::Role::other, {.exact = true, .trainable = false});
    };
    slope = table("slope_rate", {heads, 1, 1});
    query = table("query_decay", {heads, block, 1});
    key = table("key_decay", {heads, block, 1});
    diagonal = table("diagonal_decay", {1, heads, block, block});
    const at::NoGradGuard no_gradient;
    const Tensor loaded = slope.entry().shard;
    if (!loaded.defined() || loaded.any().item<bool>()) return;  // only planned, or loaded from a checkpoint
    const auto fp32 = at::TensorOptions().dtype(at::kFloat);
    const double base = 1.0 / std::pow(2.0, 8.0 / double(heads));
    const double factor = 1.0 - double(layer) / (double(layers - 1) + 1e-5) + 1e-5;
    const Tensor rate = (at::arange(1, heads + 1, fp32) * std::log(base)).exp().view({heads, 1, 1}) * factor;
    const Tensor place = at::arange(1, block + 1, fp32).unsqueeze(1), apart = place - place.t();
    slope.entry().shard.copy_(rate);
    query.entry().shard.copy_(at::exp(-rate * place));
    key.entry().shard.copy_(at::exp(-rate * (double(block) - place)));
    diagonal.entry().shard.copy_(
        at::exp((-rate * apart).masked_fill(apart < 0, -std::numeric_limits<double>::infinity())).unsqueeze(0));
  }
};

class Lightning final : public nn::Layer {
 public:
  Lightning(const Scope& scope, const DecoderSpec& spec, int64_t block, int64_t layer)
      : heads_(spec.heads),
        head_dim_(spec.head_dim),
        layer_(layer),
        activation_(spec.activation),
        qkv_(scope / "qkv_proj", spec.hidden, 3 * heads_ * head_dim_, {.deviation = spec.deviation}),
        output_(scope / "out_proj", heads_ * head_dim_, spec.hidden, {.deviation = spec.output_deviation}),
        gate_(scope / "output_gate", spec.hidden, heads_ * head_dim_, {.deviation = spec.deviation}),
        norm_(scope / "norm", heads_ * head_dim_, {.epsilon = 1e-6}),
        decay_(scope, heads_, block, layer, int64_t(spec.layers.size())) {}

  nn::LayerOutput forward(const Tensor& x, Pass& pass) const override {
    const nn::Stream& on = pass.stream();
    const int64_t tokens = x.size(0);
    const Tensor all =
        on.visible(ops::activate(qkv_(x, pass, "attn_qkv"), activation_)).view({tokens, heads_, 3 * head_dim_});
    ops::RecurrenceTensors in;
    in.q = all.narrow(2, 0, head_dim_), in.k = all.narrow(2, head_dim_, head_dim_);
    in.v = all.narrow(2, 2 * head_dim_, head_dim_);
    in.rate = -decay_.slope.value().view({1, heads_}).expand({tokens, heads_});
    const Tensor mixed = on.recurrent(layer_, 0, {}, in).reshape({tokens, heads_ * head_dim_}).to(x.scalar_type());
    const Tensor gated = ops::activate(gate_(x, pass, "attn_gate"), ops::Activation::sigmoid) * norm_(mixed);
    return {output_(gated, pass, "attn_output"), {}};
  }

  nn::CacheLayer cache() const override { return {0, 0, 0, {{heads_, head_dim_, head_dim_}}}; }
  double mixing_flops(int64_t) const override { return 6.0 * double(heads_ * head_dim_ * head_dim_); }

 private:
  int64_t heads_, head_dim_, layer_;
  ops::Activation activation_;
  nn::Linear qkv_, output_, gate_;
  nn::Norm norm_;
  Decay decay_;
};

// Factors of each residual sum: alpha for the normalized input, beta for the part's output.
struct Weights {
  double mixer_alpha = 1, mixer_beta = 1, feed_alpha = 1, feed_beta = 1;
};

class Block final : public nn::Layer {
 public:
  Block(const Scope& scope, const DecoderSpec& spec, const nn::MoeSpec& moe, const Weights& weights,
        int64_t linear_block, int64_t layer)
      : weights_(weights) {
    before_mixer_.emplace(scope / "input_layernorm", spec.hidden, spec.norm);
    const Scope mixer = scope / spec.names.attention;
    mixer_ = linear_block > 0 ? std::make_unique<Lightning>(mixer, spec, linear_block, layer)
                              : build_attention(mixer, spec, layer);
    before_feed_.emplace(scope / "post_attention_layernorm", spec.hidden, spec.norm);
    feed_ = std::make_unique<nn::Moe>(scope, moe);
  }

  nn::LayerOutput forward(const Tensor& outside, Pass& pass) const override {
    const Tensor first = (*before_mixer_)(outside);
    const Tensor mixed = first * weights_.mixer_alpha + mixer_->forward(first, pass).x * weights_.mixer_beta;
    const Tensor second = (*before_feed_)(mixed);
    nn::LayerOutput out = feed_->forward(second, pass);
    out.x = second * weights_.feed_alpha + out.x * weights_.feed_beta;
    return out;
  }

  nn::CacheLayer cache() const override { return mixer_->cache(); }
  double mixing_flops(int64_t length) const override { return mixer_->mixing_flops(length); }
  double idle_elements() const override { return feed_->idle_elements(); }

 private:
  Weights weights_;
  std::optional<nn::Norm> before_mixer_, before_feed_;
  std::unique_ptr<nn::Layer> mixer_, feed_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 32000,
                                           .hidden = 4096,
                                           .intermediate = 14336,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 8,
                                           .max_positions = 131072,
                                           .rope = {.theta = 1e6},
                                           .epsilon = 1e-5});
  const auto types = config.texts("layer_types");
  if (!types.empty()) check_one_a_layer(config, "layer_types", types.size(), spec.layers.size());
  std::vector<int64_t> blocks;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string type = types.empty() ? (i % 2 == 0 ? "full_attention" : "linear_attention") : types[i];
    if (type != "full_attention" && type != "linear_attention")
      config.refuse_key("layer_types", "'" + type + "' is not known", "known: full_attention, linear_attention");
    blocks.push_back(type == "linear_attention" ? integer_of(config, {"block_size"}, 256) : 0);
    spec.layers[i].attention.window = read_window(config, 0);
  }
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_local_experts", "num_experts"}, 8),
                           config.integer("num_experts_per_tok", 2), spec.intermediate);
  moe.router.normalise = true;
  moe.input_jitter = config.number("router_jitter_noise", 0.0);
  moe.name = "block_sparse_moe";
  moe.experts.files = nn::ExpertFiles::numbered();
  spec.router_loss = read_router_loss(config, moe.router);
  // The layers of one model share a spec, which lives as long as they do.
  const auto shared = std::make_shared<DecoderSpec>(spec);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string kind = blocks[i] > 0 ? "linear" : "full";
    const Weights weights{config.number(kind + "_attn_alpha_factor", 1.0),
                          config.number(kind + "_attn_beta_factor", 1.0), config.number("mlp_alpha_factor", 1.0),
                          config.number("mlp_beta_factor", 1.0)};
    spec.layers[i].block = [shared, moe, weights, block = blocks[i]](const Scope& scope, int64_t layer) {
      return std::make_unique<Block>(scope, *shared, moe, weights, block, layer);
    };
  }
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {"minimax", "model", {"rotary_emb.inv_freq"}, build, false, {{".block_sparse_moe.", ".mlp."}}};
}

}  // namespace easydel::models::zoo::minimax
