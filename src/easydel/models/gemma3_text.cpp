// Gemma 3, text (arXiv 2503.19786): Gemma 2 with normed queries and keys, and two bases of rotary positions.
#include <cmath>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 262208,
                                           .hidden = 2304,
                                           .intermediate = 9216,
                                           .layers = 26,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .head_dim = 256,
                                           .max_positions = 131072,
                                           .rope = {.by_layer_type = true},
                                           .activation_key = "hidden_activation",
                                           .activation = "gelu_pytorch_tanh",
                                           .padding = 0,
                                           .tied = true});
  if (config.boolean("use_bidirectional_attention", false))
    config.refuse_key("use_bidirectional_attention", "true is not built for this family");
  spec.norm.offset = 1.0;
  spec.names.after_mixer = "post_attention_layernorm";
  spec.names.before_feed = "pre_feedforward_layernorm";
  spec.names.after_feed = "post_feedforward_layernorm";
  spec.embedding_multiplier = std::sqrt(double(spec.hidden));
  spec.qk_norm = QkNorm::head;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  const double scale = std::pow(config.number("query_pre_attn_scalar", 256), -0.5);
  const auto sliding =
      read_sliding_layers(config, spec.layers.size(), all_but_each(config.integer("sliding_window_pattern", 6)));
  set_windows(spec, sliding, read_window(config));
  const auto local = std::make_shared<const ops::RopeSpec>(config.rope_of(
      "sliding_attention", spec.head_dim, spec.max_positions, config.number("rope_local_base_freq", 10000.0)));
  spec.rope = config.rope_of("full_attention", spec.head_dim, spec.max_positions, config.number("rope_theta", 1e6),
                             "rope_scaling");
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i].scale = scale;
    if (sliding[i]) spec.layers[i].rope = local;
  }
  spec.logit_softcap = config.number("final_logit_softcapping", 0.0);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family gemma3_text() { return {"gemma3_text", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models
