// MPT: ALiBi, layer norms without a bias, no other bias; queries, keys and values may be clamped.
#include <bit>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::mpt {
namespace {

// Slopes for the next power of two of heads, taken in steps of two. The largest exponent is 8 whatever alibi_bias_max
// says, as in transformers.
std::vector<float> slopes_of(int64_t heads) {
  const auto power = int64_t(std::bit_ceil(uint64_t(heads)));
  const auto slope = [&](int64_t i) { return 1.0f / std::exp2(float(i + 1) * (8.0f / float(power))); };
  std::vector<float> slopes;
  if (power != heads)
    for (int64_t i = 1; i < power; i += 2) slopes.push_back(slope(i));
  for (int64_t i = 0; i < power; i += power == heads ? 1 : 2) slopes.push_back(slope(i));
  slopes.resize(size_t(heads));
  return slopes;
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  const Value none = Value::map();
  const Value* given = config.find("attn_config");
  const ConfigReader attention(given ? *given : none, config.where().below("attn_config"));
  // transformers computes the same model whatever these keys say.
  for (const char* key : {"prefix_lm", "qk_ln", "attn_uses_sequence_id"})
    if (attention.boolean(key, false))
      log::warning(attention.where().below(key).text(), ": true has no effect in this family");
  DecoderSpec spec;
  spec.names = {.base = "transformer",
                .embedding = "wte",
                .layers = "blocks",
                .norm = "norm_f",
                .before_mixer = "norm_1",
                .before_feed = "norm_2",
                .attention = "attn",
                .qkv = "Wqkv",
                .output = "out_proj",
                .mlp = "ffn"};
  spec.vocabulary = read_size(config, "vocab_size", 50368);
  spec.hidden = read_size(config, "d_model", "hidden_size", 2048);
  spec.heads = spec.kv_heads = read_size(config, "n_heads", "num_attention_heads", 16);
  spec.head_dim = head_size(config, "d_model", spec);
  spec.intermediate = 4 * spec.hidden;  // expansion_ratio is not read by transformers
  spec.max_positions = read_size(config, "max_seq_len", 2048);
  spec.layers.resize(size_t(read_size(config, "n_layers", "num_hidden_layers", 24)));
  const double scale = attention.number("softmax_scale", std::pow(double(spec.head_dim), -0.5));
  for (DecoderLayerSpec& layer : spec.layers) {
    layer.attention.scale = scale;
    layer.attention.fully_masked = ops::FullyMasked::uniform_without_gradient;
  }
  spec.qkv = QkvLayout::sequential;
  spec.clip_qkv = attention.number("clip_qkv", 0.0);
  set_slopes(spec, slopes_of(spec.heads));
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = config.number("layer_norm_epsilon", 1e-5), .bias = false};
  spec.activation = ops::Activation::gelu;
  spec.gated = false;
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.attention_dropout = spec.residual_dropout = attention.number("attn_pdrop", 0.0);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"mpt", "transformer", {}, build, true}; }

}  // namespace easydel::models::zoo::mpt
