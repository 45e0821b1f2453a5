// Granite 3 MoE: Granite with experts in every layer, chosen before their softmax.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(
      config,
      {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .max_positions = 2048});
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.embedding_multiplier = config.number("embedding_multiplier", 1.0);
  spec.residual_multiplier = config.number("residual_multiplier", 1.0);
  spec.logit_multiplier = 1.0 / config.number("logits_scaling", 1.0);
  for (DecoderLayerSpec& layer : spec.layers) layer.scale = config.number("attention_multiplier", 1.0);
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_local_experts"}, 8),
                           config.integer("num_experts_per_tok", 2), spec.intermediate);
  moe.router.scoring = ops::Scoring::softmax_of_chosen;
  moe.name = "block_sparse_moe";
  moe.router_names.weight = "router.layer.weight";
  moe.experts.files = {nn::ExpertFiles::fused("input_linear.weight", "output_linear.weight"),
                       nn::ExpertFiles::fused("experts.gate_up_proj", "experts.down_proj")};
  spec.router_loss = read_router_loss(config, moe.router);
  set_experts(spec, moe, all_layers(spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family granitemoe() {
  return {"granitemoe", "model", {"rotary_emb.inv_freq"}, build, false, {{".router.layer.weight", ".router.weight"}}};
}

}  // namespace easydel::models
