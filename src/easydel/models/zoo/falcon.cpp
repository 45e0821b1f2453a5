// Falcon (arXiv 2311.16867): attention and mlp in parallel in most models, rotary positions or ALiBi, three layouts of
// the fused weight of queries, keys and values.
#include <cmath>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::falcon {
namespace {

// The norms of a block, by name.
void place_norms(const ConfigReader& config, bool grouped, DecoderSpec& spec) {
  spec.parallel_residual = config.boolean("parallel_attn", true);
  const int64_t norms = config.integer("num_ln_in_parallel_attn", grouped ? 2 : 1);
  if (grouped && !spec.parallel_residual)
    config.refuse_key("parallel_attn", "false is not known to the new_decoder_architecture");
  if (norms != 1 && !(norms == 2 && grouped))
    config.refuse_key("num_ln_in_parallel_attn", std::to_string(norms) + " is not known to this architecture");
  if (!spec.parallel_residual) return;
  spec.names.before_mixer = norms == 2 ? "ln_attn" : "input_layernorm";
  spec.names.before_feed = norms == 2 ? "ln_mlp" : "";
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec;
  spec.names = {.base = "transformer",
                .embedding = "word_embeddings",
                .layers = "h",
                .norm = "ln_f",
                .attention = "self_attention",
                .qkv = "query_key_value",
                .output = "dense",
                .up = "dense_h_to_4h",
                .down = "dense_4h_to_h"};
  spec.vocabulary = read_size(config, "vocab_size", 65024);
  spec.hidden = read_size(config, "n_embed", "hidden_size", 4544);
  spec.heads = read_size(config, "num_attention_heads", "n_head", 71);
  spec.head_dim = head_size(config, "hidden_size", spec);
  const bool grouped = config.boolean("new_decoder_architecture", false);
  const bool one_key = !grouped && config.boolean("multi_query", true);
  spec.kv_heads = grouped ? read_size(config, "num_kv_heads", "n_head_kv", spec.heads) : one_key ? 1 : spec.heads;
  check_kv_heads(config, "num_kv_heads", spec.kv_heads, spec.heads);
  spec.qkv = one_key ? QkvLayout::sequential : QkvLayout::grouped;
  spec.intermediate = read_size(config, "ffn_hidden_size", 4 * spec.hidden);
  spec.max_positions = read_size(config, "max_position_embeddings", 2048);
  spec.layers.resize(size_t(read_size(config, "num_hidden_layers", "n_layer", 32)));
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.scale = std::pow(double(spec.head_dim), -0.5);
  if (config.boolean("alibi", false)) {
    // Slopes are bf16 here, are added before the scores are scaled, and count twice: transformers' eager attention adds
    // them to the scores and again with the mask.
    std::vector<float> slopes = alibi_slopes(spec.heads);
    for (float& slope : slopes) slope *= 2;
    set_slopes(spec, slopes);
    for (DecoderLayerSpec& layer : spec.layers) layer.attention.slopes_in_bf16 = true;
  } else {
    spec.rope = config.rope(spec.head_dim, spec.max_positions);
  }
  place_norms(config, grouped, spec);
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = config.number("layer_norm_epsilon", 1e-5)};
  read_activation(config, "activation", "gelu", spec);
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = config.boolean("bias", false);
  spec.gated = false;
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.attention_dropout = config.number("attention_dropout", 0.0);
  spec.residual_dropout = config.number("hidden_dropout", 0.0);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"falcon", "transformer", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::falcon
