#include "easydel/models/gemma_keys.h"

#include <cmath>

namespace easydel::models {

void read_gemma(const ConfigReader& config, DecoderSpec& spec) {
  spec.norm.offset = 1.0;
  spec.embedding_multiplier = std::sqrt(double(spec.hidden));
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
}

DecoderSpec read_gemma2(const ConfigReader& config, int64_t vocabulary, int64_t max_positions, bool norm_after,
                        const RopeDefaults& rope) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = vocabulary,
                                           .hidden = 2304,
                                           .intermediate = 9216,
                                           .layers = 26,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .head_dim = 256,
                                           .max_positions = max_positions,
                                           .rope = rope,
                                           .activation_key = "hidden_activation",
                                           .activation = "gelu_pytorch_tanh",
                                           .padding = 0,
                                           .tied = true});
  read_gemma(config, spec);
  spec.names.before_feed = "pre_feedforward_layernorm";
  if (norm_after) {
    spec.names.after_mixer = "post_attention_layernorm";
    spec.names.after_feed = "post_feedforward_layernorm";
  }
  const double scale = std::pow(config.number("query_pre_attn_scalar", 256), -0.5);
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.scale = scale;
  return spec;
}

void refuse_both_sides(const ConfigReader& config) {
  if (config.boolean("use_bidirectional_attention", false))
    config.refuse_key("use_bidirectional_attention", "true is not built for this family");
}

void read_gemma2_windows_and_caps(const ConfigReader& config, DecoderSpec& spec) {
  refuse_both_sides(config);
  set_windows(spec, read_sliding_layers(config, spec.layers.size(), all_but_each(2)), read_window(config));
  // Absent: the family's own; null: none.
  const auto cap = [&](const char* key, double otherwise) {
    return config.number(key, config.has(key) ? 0.0 : otherwise);
  };
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.softcap = cap("attn_logit_softcapping", 50.0);
  spec.logit_softcap = cap("final_logit_softcapping", 30.0);
}

}  // namespace easydel::models
