// BLOOM (arXiv 2211.05100): ALiBi, a norm after the embedding, one fused weight with each head's query, key and value.
#include <cmath>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::bloom {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec;
  spec.names = {.base = "transformer",
                .embedding = "word_embeddings",
                .layers = "h",
                .embedding_norm = "word_embeddings_layernorm",
                .norm = "ln_f",
                .attention = "self_attention",
                .qkv = "query_key_value",
                .output = "dense",
                .up = "dense_h_to_4h",
                .down = "dense_4h_to_h"};
  spec.vocabulary = read_size(config, "vocab_size", 250880);
  spec.hidden = read_size(config, "n_embed", "hidden_size", 64);
  spec.heads = spec.kv_heads = read_size(config, "n_head", "num_attention_heads", 8);
  spec.head_dim = head_size(config, "hidden_size", spec);
  spec.intermediate = 4 * spec.hidden;
  spec.layers.resize(size_t(read_size(config, "n_layer", "num_hidden_layers", 2)));
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.scale = std::pow(double(spec.head_dim), -0.5);
  spec.qkv = QkvLayout::grouped;
  set_slopes(spec, alibi_slopes(spec.heads));
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = config.number("layer_norm_epsilon", 1e-5)};
  spec.embedding_norm = spec.norm;
  if (config.boolean("apply_residual_connection_post_layernorm", false)) spec.residual = Residual::normed;
  // Slices of one product, whose sum is the product.
  config.integer("pretraining_tp", 1);
  config.boolean("slow_but_exact", false);
  spec.activation = ops::Activation::gelu_tanh;
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = true;
  spec.gated = false;
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.attention_dropout = config.number("attention_dropout", 0.0);
  spec.residual_dropout = config.number("hidden_dropout", 0.0);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"bloom", "transformer", {}, build, true}; }

}  // namespace easydel::models::zoo::bloom
