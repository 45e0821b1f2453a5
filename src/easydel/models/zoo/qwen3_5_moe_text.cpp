// Qwen3.5 with experts, text.
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"
#include "easydel/models/qwen3_next_keys.h"

namespace easydel::models::zoo::qwen3_5_moe_text {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_qwen3_next(config,
                                     {.vocabulary = 248320,
                                      .hidden = 2048,
                                      .intermediate = 512,
                                      .layers = 40,
                                      .heads = 16,
                                      .kv_heads = 2,
                                      .head_dim = 256,
                                      .max_positions = 32768},
                                     false);
  set_qwen3_next_experts(config, spec, 256, 8, true, all_layers(spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "qwen3_5_moe_text",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .ignored_parts = {"mtp."}};
}

}  // namespace easydel::models::zoo::qwen3_5_moe_text
