// LongCat-Flash (arXiv 2509.01322): a layer is two attentions and two mlps in alternation; experts read the first mlp's
// input and are added at the layer's end. Some experts return their input.
#include <cmath>

#include "easydel/models/family.h"
#include "easydel/models/mla_keys.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::longcat_flash {
namespace {

using nn::Pass;
using nn::Scope;

class Block final : public nn::Layer {
 public:
  Block(const Scope& scope, const DecoderSpec& spec, nn::MlaSpec mla, const nn::MoeSpec& moe, int64_t layer) {
    nn::LinearOptions options;
    options.deviation = spec.deviation;
    for (int64_t half = 0; half < 2; ++half) {
      before_mixer_.emplace_back(scope / "input_layernorm" / half, spec.hidden, spec.norm);
      mla.name = "self_attn." + std::to_string(half);
      mla.cache_heads = 2;
      mla.cache_head = half;
      mixers_.push_back(nn::build_mla(scope, mla, layer));
      before_feed_.emplace_back(scope / "post_attention_layernorm" / half, spec.hidden, spec.norm);
      feeds_.emplace_back(scope / "mlps" / half, spec.hidden, spec.intermediate, spec.activation, options);
    }
    experts_ = std::make_unique<nn::Moe>(scope, moe);
  }

  nn::LayerOutput forward(const Tensor& outside, Pass& pass) const override {
    Tensor x = outside;
    nn::LayerOutput aside;
    for (size_t half = 0; half < 2; ++half) {
      x = x + mixers_[half]->forward(before_mixer_[half](x), pass).x;
      const Tensor normed = before_feed_[half](x);
      if (half == 0) aside = experts_->forward(normed, pass);
      x = x + feeds_[half](normed, pass);
    }
    aside.x = x + aside.x;
    return aside;
  }

  nn::CacheLayer cache() const override { return mixers_[0]->cache(); }
  double mixing_flops(int64_t length) const override { return 2.0 * mixers_[0]->mixing_flops(length); }
  double idle_elements() const override { return experts_->idle_elements(); }

 private:
  std::vector<nn::Norm> before_mixer_, before_feed_;
  std::vector<std::unique_ptr<nn::Layer>> mixers_;
  std::vector<nn::GatedMlp> feeds_;
  std::unique_ptr<nn::Moe> experts_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  // num_layers counts pairs; num_hidden_layers, if a file has it, counts attentions.
  const int64_t layers =
      config.find("num_layers") ? config.integer("num_layers", 28) : integer_of(config, {"num_hidden_layers"}, 56) / 2;
  config.positive("num_layers", layers);
  DecoderSpec spec = read_latent_decoder(
      config,
      {.vocabulary = 131072, .hidden = 6144, .layers = layers, .heads = 64, .max_positions = 131072, .epsilon = 1e-5},
      integer_of(config, {"ffn_hidden_size", "intermediate_size"}, 12288));
  spec.layers.resize(size_t(layers));
  nn::MlaSpec mla = read_mla(config, spec, {.q_rank = 1536, .theta = 1e7});
  if (mla.q_rank == 0) config.refuse_key("q_lora_rank", "is missing", "this family's queries come from a short vector");
  mla.q_multiplier = std::sqrt(double(spec.hidden) / double(mla.q_rank));
  mla.kv_multiplier = std::sqrt(double(spec.hidden) / double(mla.kv_rank));
  if (const auto whole = config.integer("qk_head_dim"); whole && *whole != mla.plain_dim + mla.rope_dim)
    config.refuse_key("qk_head_dim",
                      std::to_string(*whole) + " is not the sum of qk_nope_head_dim and qk_rope_head_dim");

  const int64_t experts = integer_of(config, {"n_routed_experts", "num_local_experts"}, 512);
  const int64_t identities =
      config.find("zero_expert_num") || !config.has("zero_expert_num") ? config.integer("zero_expert_num", 256) : 0;
  nn::MoeSpec moe =
      moe_of(config, spec, experts + identities, integer_of(config, {"moe_topk", "num_experts_per_tok"}, 12),
             integer_of(config, {"expert_ffn_hidden_size", "moe_intermediate_size"}, 2048));
  moe.experts.experts = experts;
  moe.experts.identities = identities;
  moe.exact_router = true;
  moe.router.factor = config.number("routed_scaling_factor", 6.0);
  moe.router_names.weight = "router.classifier.weight";
  moe.router_names.correction = "router.e_score_correction_bias";
  if (config.boolean("router_bias", false)) {
    moe.router_names.bias = "router.classifier.bias";
    moe.router_names.bias_counts = false;  // as in transformers
  }
  for (DecoderLayerSpec& layer : spec.layers)
    layer.block = [spec, mla, moe](const Scope& scope, int64_t index) {
      return std::make_unique<Block>(scope, spec, mla, moe, index);
    };
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "longcat_flash",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .ignored_parts = {"model.mtp."}};
}

}  // namespace easydel::models::zoo::longcat_flash
