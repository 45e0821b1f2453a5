// EXAONE 3 (arXiv 2408.03541): Llama under GPT-2's names.
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::exaone {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec;
  spec.names = {.base = "transformer",
                .embedding = "wte",
                .layers = "h",
                .norm = "ln_f",
                .before_mixer = "ln_1",
                .before_feed = "ln_2",
                .attention = "attn.attention",
                .output = "out_proj",
                .gate = "c_fc_0",
                .up = "c_fc_1",
                .down = "c_proj"};
  spec.vocabulary = read_size(config, "vocab_size", 102400);
  spec.hidden = read_size(config, "hidden_size", 2048);
  spec.heads = read_size(config, "num_attention_heads", 32);
  spec.kv_heads = read_size(config, "num_key_value_heads", spec.heads);
  check_kv_heads(config, "num_key_value_heads", spec.kv_heads, spec.heads);
  spec.head_dim = head_size(config, "hidden_size", spec);
  spec.intermediate = read_size(config, "intermediate_size", 4 * spec.hidden);
  spec.max_positions = read_size(config, "max_position_embeddings", 2048);
  spec.layers.resize(size_t(read_size(config, "num_layers", "num_hidden_layers", 32)));
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.scale = std::pow(double(spec.head_dim), -0.5);
  spec.rope = config.rope(spec.head_dim, spec.max_positions);
  spec.norm = {.kind = nn::NormKind::rms, .epsilon = config.number("layer_norm_epsilon", 1e-5)};
  read_activation(config, "activation_function", "silu", spec);
  spec.padding = read_padding(config, -1, spec.vocabulary);
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.attention_dropout = config.number("attention_dropout", 0.0);
  spec.embedding_dropout = config.number("embed_dropout", 0.0);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"exaone", "transformer", {"rotary.inv_freq", "rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::exaone
