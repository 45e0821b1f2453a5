// Qwen3-Next: the gated delta rule in three of four layers, experts and one shared expert for every token in all of
// them.
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"
#include "easydel/models/qwen3_next_keys.h"

namespace easydel::models::zoo::qwen3_next {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_qwen3_next(config,
                                     {.vocabulary = 151936,
                                      .hidden = 2048,
                                      .intermediate = 5632,
                                      .layers = 48,
                                      .heads = 16,
                                      .kv_heads = 2,
                                      .head_dim = 256,
                                      .max_positions = 32768},
                                     true);
  set_qwen3_next_experts(config, spec, 512, 10, config.boolean("norm_topk_prob", true),
                         read_expert_steps(config, spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "qwen3_next",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .ignored_parts = {"mtp."}};
}

}  // namespace easydel::models::zoo::qwen3_next
