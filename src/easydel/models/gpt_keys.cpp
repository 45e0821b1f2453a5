#include "easydel/models/gpt_keys.h"

#include <cmath>

namespace easydel::models {

DecoderSpec read_gpt(const ConfigReader& config, const GptDefaults& defaults) {
  if (config.boolean("add_cross_attention", false))
    config.refuse_key("add_cross_attention", "cross attention is not built for this family");
  DecoderSpec spec;
  spec.names = {.base = "transformer",
                .embedding = "wte",
                .layers = "h",
                .norm = "ln_f",
                .before_mixer = "ln_1",
                .before_feed = "ln_2",
                .attention = "attn",
                .qkv = "c_attn",
                .output = "c_proj",
                .up = "c_fc",
                .down = "c_proj"};
  spec.vocabulary = read_size(config, "vocab_size", defaults.vocabulary);
  spec.hidden = read_size(config, defaults.hidden_key, "hidden_size", defaults.hidden);
  spec.heads = spec.kv_heads = read_size(config, defaults.heads_key, "num_attention_heads", defaults.heads);
  spec.head_dim = head_size(config, defaults.hidden_key, spec);
  spec.intermediate = read_size(config, defaults.inner_key, 4 * spec.hidden);
  spec.max_positions = read_size(config, defaults.positions_key, "max_position_embeddings", defaults.max_positions);
  spec.layers.resize(size_t(read_size(config, defaults.layers_key, "num_hidden_layers", defaults.layers)));
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.scale = std::pow(double(spec.head_dim), -0.5);
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = config.number("layer_norm_epsilon", 1e-5)};
  read_activation(config, "activation_function", defaults.activation, spec);
  spec.mlp_bias = true;
  spec.gated = false;
  spec.tied = config.boolean("tie_word_embeddings", defaults.tied);
  spec.attention_dropout = config.number(defaults.attention_dropout_key, defaults.dropout);
  spec.residual_dropout = config.number(defaults.residual_dropout_key, defaults.dropout);
  spec.embedding_dropout = config.number(defaults.embedding_dropout_key, defaults.dropout);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  return spec;
}

}  // namespace easydel::models
