// GPT-2: learned positions, layer norms, fused projections that the checkpoint holds as [in, out].
#include <cmath>

#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"
#include "easydel/models/gpt_keys.h"

namespace easydel::models::zoo::gpt2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_gpt(config, {.dropout = 0.1});
  const bool by_layer = config.boolean("scale_attn_by_inverse_layer_idx", false);
  const bool scaled = config.boolean("scale_attn_weights", true);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if (!scaled) spec.layers[i].attention.scale = 1.0;
    if (by_layer) spec.layers[i].attention.scale /= double(i + 1);
  }
  // reorder_and_upcast_attn requests fp32 scores, which every backend here uses anyway.
  config.boolean("reorder_and_upcast_attn", false);
  spec.qkv_bias = spec.output_bias = true;
  spec.qkv = QkvLayout::sequential;
  spec.learned_positions = true;
  spec.block_builder = [](const nn::Scope& scope, const DecoderSpec& whole, int64_t layer) {
    return build_block(scope.with_transposed_weights(), whole, layer);
  };
  // Weights that write to the residual stream start smaller, by their number.
  spec.output_deviation = spec.deviation / std::sqrt(2.0 * double(spec.layers.size()));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"gpt2", "transformer", {".attn.bias", ".attn.masked_bias"}, build, true}; }

}  // namespace easydel::models::zoo::gpt2
