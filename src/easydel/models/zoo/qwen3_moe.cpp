// Qwen3-MoE (arXiv 2505.09388): Qwen3 with experts.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::qwen3_moe {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 151936,
                                           .hidden = 2048,
                                           .intermediate = 6144,
                                           .layers = 24,
                                           .heads = 32,
                                           .kv_heads = 4,
                                           .max_positions = 32768});
  spec.qk_norm = QkNorm::head;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  if (config.boolean("use_sliding_window", false))
    for (DecoderLayerSpec& layer : spec.layers) layer.attention.window = read_window(config);
  nn::MoeSpec moe =
      moe_of(config, spec, integer_of(config, {"num_local_experts", "num_experts"}, 128),
             config.integer("num_experts_per_tok", 8), integer_of(config, {"moe_intermediate_size"}, 768));
  moe.router.normalise = config.boolean("norm_topk_prob", false);
  spec.router_loss = read_router_loss(config, moe.router);
  set_experts(spec, moe, read_expert_steps(config, spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"qwen3_moe", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::qwen3_moe
