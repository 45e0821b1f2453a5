// GPTBigCode (StarCoder, arXiv 2305.06161): GPT-2 with one key and value for all heads, its weights as [out, in].
#include <cmath>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
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
  spec.vocabulary = read_size(config, "vocab_size", 50257);
  spec.hidden = read_size(config, "n_embd", "hidden_size", 768);
  spec.heads = read_size(config, "n_head", "num_attention_heads", 12);
  spec.head_dim = head_size(config, "n_embd", spec);
  const bool one_key = config.boolean("multi_query", true);
  spec.kv_heads = one_key ? 1 : spec.heads;
  spec.qkv = one_key ? QkvLayout::sequential : QkvLayout::grouped;
  spec.intermediate = read_size(config, "n_inner", 4 * spec.hidden);
  spec.max_positions = read_size(config, "n_positions", "max_position_embeddings", 1024);
  spec.layers.resize(size_t(read_size(config, "n_layer", "num_hidden_layers", 12)));
  const double scale = config.boolean("scale_attn_weights", true) ? std::pow(double(spec.head_dim), -0.5) : 1.0;
  for (DecoderLayerSpec& layer : spec.layers) layer.scale = scale;
  // Both ask for a softmax in fp32, which every backend keeps anyway.
  config.boolean("attention_softmax_in_fp32", true);
  config.boolean("scale_attention_softmax_in_fp32", true);
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = config.number("layer_norm_epsilon", 1e-5)};
  read_activation(config, "activation_function", "gelu_pytorch_tanh", spec);
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = spec.learned_positions = true;
  spec.gated = false;
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.attention_dropout = config.number("attn_pdrop", 0.1);
  spec.residual_dropout = config.number("resid_pdrop", 0.1);
  spec.embedding_dropout = config.number("embd_pdrop", 0.1);
  spec.deviation = config.number("initializer_range", 0.02);
  spec.output_deviation = spec.deviation / std::sqrt(2.0 * double(spec.layers.size()));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family gpt_bigcode() {
  return {"gpt_bigcode", "transformer", {".attn.bias", ".attn.masked_bias"}, build, true};
}

}  // namespace easydel::models
