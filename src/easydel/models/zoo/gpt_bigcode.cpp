// GPTBigCode (StarCoder, arXiv 2305.06161): GPT-2 with one key and value for all heads, its weights as [out, in].
#include <cmath>

#include "easydel/models/family.h"
#include "easydel/models/gpt_keys.h"

namespace easydel::models::zoo::gpt_bigcode {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_gpt(config, {.activation = "gelu_pytorch_tanh", .dropout = 0.1});
  const bool one_key = config.boolean("multi_query", true);
  spec.kv_heads = one_key ? 1 : spec.heads;
  spec.qkv = one_key ? QkvLayout::sequential : QkvLayout::grouped;
  if (!config.boolean("scale_attn_weights", true))
    for (DecoderLayerSpec& layer : spec.layers) layer.attention.scale = 1.0;
  // Both request an fp32 softmax, which every backend uses anyway.
  config.boolean("attention_softmax_in_fp32", true);
  config.boolean("scale_attention_softmax_in_fp32", true);
  spec.qkv_bias = spec.output_bias = spec.learned_positions = true;
  spec.output_deviation = spec.deviation / std::sqrt(2.0 * double(spec.layers.size()));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"gpt_bigcode", "transformer", {".attn.bias", ".attn.masked_bias"}, build, true}; }

}  // namespace easydel::models::zoo::gpt_bigcode
