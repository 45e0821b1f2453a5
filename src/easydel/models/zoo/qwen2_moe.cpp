// Qwen1.5-MoE and Qwen2-MoE (arXiv 2407.10671): Qwen2 with experts, and one gated shared expert for every token.
#include <algorithm>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::qwen2_moe {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 151936,
                                           .hidden = 2048,
                                           .intermediate = 5632,
                                           .layers = 24,
                                           .heads = 16,
                                           .kv_heads = 16,
                                           .max_positions = 32768});
  spec.qkv_bias = config.boolean("qkv_bias", true);
  // Without layer_types every other layer has a window, up to max_window_layers.
  if (!config.texts("layer_types").empty()) {
    read_layer_windows(config, spec);
  } else if (config.boolean("use_sliding_window", false)) {
    const int64_t window = read_window(config), until = config.integer("max_window_layers", 28);
    for (int64_t i = 0; i < std::min(until, int64_t(spec.layers.size())); i += 2)
      spec.layers[size_t(i)].attention.window = window;
  }
  nn::MoeSpec moe =
      moe_of(config, spec, integer_of(config, {"num_experts"}, 60), config.integer("num_experts_per_tok", 4),
             integer_of(config, {"moe_intermediate_size"}, 1408));
  moe.router.normalise = config.boolean("norm_topk_prob", false);
  moe.shared_inner = integer_of(config, {"shared_expert_intermediate_size"}, 5632);
  moe.shared = "shared_expert";
  moe.shared_gate = "shared_expert_gate";
  spec.router_loss = read_router_loss(config, moe.router);
  set_experts(spec, moe, read_expert_steps(config, spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"qwen2_moe", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::qwen2_moe
