// Hunyuan-A13B: queries and keys are normalized after their rotation; experts and one shared expert for every token.
#include <initializer_list>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::hunyuan_v1_moe {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 290943,
                                           .hidden = 4096,
                                           .intermediate = 11008,
                                           .layers = 32,
                                           .heads = 32,
                                           .max_positions = 2048,
                                           .rope = {.ntk_alpha = true},
                                           .epsilon = 1e-5,
                                           .padding = 0});
  spec.names.q_norm = "query_layernorm";
  spec.names.k_norm = "key_layernorm";
  spec.qk_norm = QkNorm::head;
  spec.qk_norm_after_rope = true;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  // A number for all layers, or one for each.
  const auto by_layer = [&](std::initializer_list<const char*> keys, int64_t otherwise, size_t layer) {
    for (const char* key : keys)
      if (const Value* value = config.find(key); value && value->is_list()) {
        const auto list = config.integers(key);
        if (layer >= list.size()) config.refuse_key(key, "has fewer numbers than there are layers");
        return list[layer];
      }
    return integer_of(config, keys, otherwise);
  };
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    nn::MoeSpec moe = moe_of(config, spec, by_layer({"num_experts", "num_local_experts"}, 1, i),
                             by_layer({"moe_topk", "num_experts_per_tok"}, 1, i), spec.intermediate);
    moe.exact_router = true;
    moe.router.normalise = true;
    moe.router_names.weight = "gate.wg.weight";
    moe.shared = "shared_mlp";
    moe.shared_inner = spec.intermediate;
    std::vector<bool> here(spec.layers.size(), false);
    here[i] = true;
    set_experts(spec, moe, here);
  }
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"hunyuan_v1_moe", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::hunyuan_v1_moe
