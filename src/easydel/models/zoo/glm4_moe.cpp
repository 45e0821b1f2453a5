// GLM-4.5 (arXiv 2508.06471): grouped-query attention with rotary positions on half of each head, and the experts of
// DeepSeek-V3.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::glm4_moe {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 151552,
                                           .hidden = 4096,
                                           .intermediate = 10944,
                                           .layers = 46,
                                           .heads = 96,
                                           .kv_heads = 8,
                                           .max_positions = 131072,
                                           .rope = {.partial = 0.5, .reads_partial = true},
                                           .epsilon = 1e-5});
  spec.qkv_bias = config.boolean("attention_bias", false);
  if (config.boolean("use_qk_norm", false)) spec.qk_norm = QkNorm::head;
  set_corrected_experts(config, spec, {.experts = 128, .inner = 1408, .factor = 1.0, .first = 1});
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "glm4_moe",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .extra_layers = true};
}

}  // namespace easydel::models::zoo::glm4_moe
