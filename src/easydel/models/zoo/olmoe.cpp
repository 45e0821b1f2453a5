// OLMoE (arXiv 2409.02060): norms over all queries and over all keys, experts in every layer.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::olmoe {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 50304,
                                           .hidden = 2048,
                                           .intermediate = 2048,
                                           .layers = 16,
                                           .heads = 16,
                                           .max_positions = 4096,
                                           .whole_heads = true,
                                           .epsilon = 1e-5,
                                           .padding = 1});
  spec.qk_norm = QkNorm::whole;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.clip_qkv = config.number("clip_qkv", 0.0);
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_experts", "num_local_experts"}, 64),
                           config.integer("num_experts_per_tok", 8), spec.intermediate);
  moe.router.normalise = config.boolean("norm_topk_prob", false);
  spec.router_loss = read_router_loss(config, moe.router, 0.01);
  set_experts(spec, moe, all_layers(spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"olmoe", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::olmoe
