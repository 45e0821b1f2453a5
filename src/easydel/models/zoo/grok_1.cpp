// Grok-1, as published for transformers: norms before and after each part, soft-capped scores, experts with a softmax
// over all whose weights are not normalized again; multipliers on embeddings, scores and logits.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::grok_1 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 131072,
                                           .hidden = 6144,
                                           .intermediate = 32768,
                                           .layers = 64,
                                           .heads = 48,
                                           .kv_heads = 8,
                                           .max_positions = 8192,
                                           .epsilon = 1e-5,
                                           .activation = "gelu_pytorch_tanh",
                                           .tied = true});
  spec.names.before_mixer = "pre_attn_norm";
  spec.names.after_mixer = "post_attn_norm";
  spec.names.before_feed = "pre_moe_norm";
  spec.names.after_feed = "post_moe_norm";
  spec.names.attention = "attn";
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.embedding_multiplier = config.number("embedding_multiplier_scale", 78.38367176906169);
  spec.logit_multiplier = config.number("output_multiplier_scale", 0.5773502691896257);
  for (DecoderLayerSpec& layer : spec.layers) {
    layer.attention.scale = config.number("attn_output_multiplier", 0.08838834764831845);
    layer.attention.softcap = config.number("max_attn_value", 30.0);
  }
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_experts"}, 8),
                           integer_of(config, {"num_experts_per_tok"}, 2), spec.intermediate);
  moe.name = "moe_block";
  moe.experts.files = {nn::ExpertFiles::each("experts", "linear", "linear_v", "linear_1")};
  spec.router_loss = read_router_loss(config, moe.router);
  set_experts(spec, moe, all_layers(spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"grok-1", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::grok_1
