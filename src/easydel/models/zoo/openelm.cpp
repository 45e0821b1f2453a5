// OpenELM (arXiv 2404.14619): numbers of heads and inner units per layer; one fused weight for q, k and v, one for gate
// and up.
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::openelm {
namespace {

// The nearest multiple of `divisor`, and not below nine tenths of the value.
int64_t divisible(double value, int64_t divisor) {
  int64_t rounded = std::max(divisor, int64_t(value + double(divisor) / 2) / divisor * divisor);
  if (double(rounded) < 0.9 * value) rounded += divisor;
  return rounded;
}

// A number for each layer, from a list.
std::vector<int64_t> by_layer(const ConfigReader& config, const char* key, size_t layers) {
  const auto values = config.integers(key);
  if (values.empty()) config.refuse_key(key, "is missing", "it lists a number for each layer");
  if (values.size() != layers)
    config.refuse_key(key, str("names ", values.size(), " layers; num_transformer_layers is ", layers));
  for (const int64_t value : values) config.positive(key, value);
  return values;
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec;
  spec.names = {.base = "transformer",
                .embedding = "token_embeddings",
                .before_mixer = "attn_norm",
                .before_feed = "ffn_norm",
                .attention = "attn",
                .output = "out_proj",
                .mlp = "ffn",
                .up = "proj_1",
                .gate_up = "proj_1",
                .down = "proj_2"};
  const auto size = [&](const char* key, int64_t otherwise) { return read_size(config, key, key, otherwise); };
  spec.vocabulary = size("vocab_size", 32000);
  spec.hidden = size("model_dim", 2048);
  spec.head_dim = size("head_dim", 128);
  spec.max_positions = size("rope_max_length", 4096);
  spec.layers.resize(size_t(read_size(config, "num_transformer_layers", "num_hidden_layers", 12)));
  const auto heads = by_layer(config, "num_query_heads", spec.layers.size());
  const auto kv_heads = by_layer(config, "num_kv_heads", spec.layers.size());
  const int64_t divisor = size("ffn_dim_divisor", 256);
  const Value* factors = config.find("ffn_multipliers");
  const bool listed = factors && factors->is_list();
  if (listed && factors->items.size() != spec.layers.size())
    config.refuse_key("ffn_multipliers",
                      str("names ", factors->items.size(), " layers; num_transformer_layers is ", spec.layers.size()));
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    DecoderLayerSpec& layer = spec.layers[i];
    layer.attention.scale = std::pow(double(spec.head_dim), -0.5);
    layer.sizes.heads = heads[i];
    layer.sizes.kv_heads = kv_heads[i];
    if (layer.sizes.heads % layer.sizes.kv_heads != 0)
      config.refuse_key("num_kv_heads",
                        str(layer.sizes.kv_heads, " does not divide ", layer.sizes.heads, " query heads of layer ", i));
    const double factor = listed ? factors->items[i].as_double().value_or(0.0) : config.number("ffn_multipliers", 4.0);
    layer.sizes.intermediate = divisible(factor * double(spec.hidden), divisor);
  }
  spec.heads = heads[0], spec.kv_heads = kv_heads[0], spec.intermediate = spec.layers[0].sizes.intermediate;
  spec.rope.emplace();
  spec.rope->dim = spec.head_dim;
  spec.rope->theta = config.number("rope_freq_constant", 10000.0);
  const std::string norm = config.text("normalization_layer_name", "rms_norm");
  if (norm != "rms_norm")
    config.refuse_key("normalization_layer_name", str("'", norm, "' is not built for this family"));
  spec.norm = {.kind = nn::NormKind::rms, .epsilon = 1e-6};
  spec.qkv = QkvLayout::sequential;
  if (config.boolean("normalize_qk_projections", false)) spec.qk_norm = QkNorm::head;
  spec.gated = config.boolean("ffn_with_glu", true);
  read_activation(config, "activation_fn_name", "swish", spec);
  spec.tied = config.boolean("share_input_output_layers", true);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"openelm", "transformer", {"rope.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::openelm
