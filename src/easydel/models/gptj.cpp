// GPT-J: attention and mlp side by side behind one layer norm; neighbouring pairs of a head's first dimensions turn.
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec;
  spec.names = {.base = "transformer",
                .embedding = "wte",
                .layers = "h",
                .norm = "ln_f",
                .before_mixer = "ln_1",
                .before_feed = "",
                .attention = "attn",
                .output = "out_proj",
                .up = "fc_in",
                .down = "fc_out"};
  spec.vocabulary = read_size(config, "vocab_size", 50400);
  spec.hidden = read_size(config, "n_embd", "hidden_size", 4096);
  spec.heads = spec.kv_heads = read_size(config, "n_head", "num_attention_heads", 16);
  spec.head_dim = head_size(config, "n_embd", spec);
  spec.intermediate = read_size(config, "n_inner", 4 * spec.hidden);
  spec.max_positions = read_size(config, "n_positions", "max_position_embeddings", 2048);
  spec.layers.resize(size_t(read_size(config, "n_layer", "num_hidden_layers", 28)));
  for (DecoderLayerSpec& layer : spec.layers) layer.scale = std::pow(double(spec.head_dim), -0.5);
  spec.rope.emplace();
  spec.rope->dim = config.has("rotary_dim") ? config.integer("rotary_dim", 0) : 64;
  spec.rope->interleaved = true;
  if (spec.rope->dim < 2 || spec.rope->dim % 2 != 0 || spec.rope->dim > spec.head_dim)
    config.refuse_key("rotary_dim", str(spec.rope->dim, " is no even number up to a head's ", spec.head_dim));
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = config.number("layer_norm_epsilon", 1e-5)};
  read_activation(config, "activation_function", "gelu_new", spec);
  spec.parallel_residual = spec.mlp_bias = spec.head_bias = true;
  spec.gated = false;
  spec.tied = config.boolean("tie_word_embeddings", false);
  spec.attention_dropout = config.number("attn_pdrop", 0.0);
  spec.residual_dropout = config.number("resid_pdrop", 0.0);
  spec.embedding_dropout = config.number("embd_pdrop", 0.0);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family gptj() {
  return {"gptj", "transformer", {".attn.bias", ".attn.masked_bias"}, build, false};
}

}  // namespace easydel::models
