// VaultGemma (arXiv 2510.15001): Gemma 2 with norms before each part alone.
#include <cmath>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 256000,
                                           .hidden = 2304,
                                           .intermediate = 9216,
                                           .layers = 26,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .head_dim = 256,
                                           .max_positions = 8192,
                                           .activation_key = "hidden_activation",
                                           .activation = "gelu_pytorch_tanh",
                                           .padding = 0,
                                           .tied = true});
  if (config.boolean("use_bidirectional_attention", false))
    config.refuse_key("use_bidirectional_attention", "true is not built for this family");
  spec.norm.offset = 1.0;
  spec.names.before_feed = "pre_feedforward_layernorm";
  spec.embedding_multiplier = std::sqrt(double(spec.hidden));
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  const double scale = std::pow(config.number("query_pre_attn_scalar", 256), -0.5);
  for (DecoderLayerSpec& layer : spec.layers) layer.scale = scale;
  set_windows(spec, read_sliding_layers(config, spec.layers.size(), all_but_each(2)), read_window(config));
  spec.attention_softcap = config.number("attn_logit_softcapping", config.has("attn_logit_softcapping") ? 0.0 : 50.0);
  spec.logit_softcap = config.number("final_logit_softcapping", config.has("final_logit_softcapping") ? 0.0 : 30.0);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family vaultgemma() { return {"vaultgemma", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models
