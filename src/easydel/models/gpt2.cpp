// GPT-2: learned positions, layer norms, fused projections that the checkpoint holds as [in, out].
#include <cmath>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  if (config.boolean("add_cross_attention", false))
    config.refuse_key("add_cross_attention", "cross attention is not built for this family");
  DecoderSpec spec;
  spec.names = {.base = "transformer", .embedding = "wte", .positions = "wpe", .layers = "h", .norm = "ln_f",
                .before_mixer = "ln_1", .before_feed = "ln_2", .attention = "attn", .qkv = "c_attn", .output = "c_proj",
                .mlp = "mlp", .up = "c_fc", .down = "c_proj"};
  spec.vocabulary = read_size(config, "vocab_size", 50257);
  spec.hidden = read_size(config, "n_embd", "hidden_size", 768);
  spec.heads = spec.kv_heads = read_size(config, "n_head", "num_attention_heads", 12);
  spec.head_dim = head_size(config, "n_embd", spec);
  spec.intermediate = read_size(config, "n_inner", 4 * spec.hidden);
  spec.max_positions = read_size(config, "n_positions", "max_position_embeddings", 1024);
  spec.layers.resize(size_t(read_size(config, "n_layer", "num_hidden_layers", 12)));
  const bool by_layer = config.boolean("scale_attn_by_inverse_layer_idx", false);
  const double scale = config.boolean("scale_attn_weights", true) ? std::pow(double(spec.head_dim), -0.5) : 1.0;
  for (size_t i = 0; i < spec.layers.size(); ++i) spec.layers[i].scale = by_layer ? scale / double(i + 1) : scale;
  // reorder_and_upcast_attn asks for scores in fp32, which every backend here keeps anyway.
  config.boolean("reorder_and_upcast_attn", false);
  spec.norm = {nn::NormKind::layer, config.number("layer_norm_epsilon", 1e-5), 0.0, true};
  read_activation(config, "activation_function", "gelu_new", spec);
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = true;
  spec.qkv = QkvLayout::sequential;
  spec.transposed = spec.learned_positions = true;
  spec.gated = false;
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.attention_dropout = config.number("attn_pdrop", 0.1);
  spec.residual_dropout = config.number("resid_pdrop", 0.1);
  spec.embedding_dropout = config.number("embd_pdrop", 0.1);
  spec.deviation = config.number("initializer_range", 0.02);
  // The weights that write into the residual stream start smaller, by the number of times that they do.
  spec.output_deviation = spec.deviation / std::sqrt(2.0 * double(spec.layers.size()));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family gpt2() {
  return {"gpt2", "transformer", {".attn.bias", ".attn.masked_bias"}, build, true};
}

}  // namespace easydel::models
