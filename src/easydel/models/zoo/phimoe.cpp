// Phi-3.5-MoE (arXiv 2404.14219): layer norms, and two experts chosen one after the other by the sparse mixer.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::phimoe {
namespace {

// With scaling, the angles are longrope's for short texts whatever the length; only the factor of cosines and sines
// depends on the length.
void read_scales(const ConfigReader& config, ops::RopeSpec& rope) {
  if (rope.type == ops::RopeType::standard) return;
  const ConfigReader in = config.rope_parameters();
  for (const char* key : {"short_mscale", "long_mscale", "original_max_position_embeddings"})
    if (!in.find(key)) in.refuse_key(key, "is missing", "rotary scaling of this family needs it");
  if (rope.type != ops::RopeType::longrope)
    in.refuse_key("rope_type", "is not built for this family", "built: default, longrope");
  rope.long_factor = rope.short_factor;
  rope.short_scale = in.number("short_mscale", 1.0);
  rope.long_scale = in.number("long_mscale", 1.0);
  rope.original_max_positions = in.integer("original_max_position_embeddings", rope.original_max_positions);
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 32064,
                                           .hidden = 4096,
                                           .intermediate = 6400,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 8,
                                           .max_positions = 131072,
                                           .rope = {.theta = 1e6},
                                           .epsilon = 1e-5});
  spec.norm.kind = nn::NormKind::layer;
  spec.norm.bias = true;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.head_bias = config.boolean("lm_head_bias", false);
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.window = read_window(config, 0);
  read_scales(config, *spec.rope);
  // The mixer always chooses two experts; num_experts_per_tok only enters the balancing loss, as in transformers.
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_local_experts"}, 16), 2, spec.intermediate);
  moe.router.scoring = ops::Scoring::sparsemixer;
  moe.router.jitter = config.number("router_jitter_noise", 0.01);
  moe.input_jitter = config.number("input_jitter_noise", 0.0);
  moe.jittered_twice = true;
  moe.name = "block_sparse_moe";
  moe.experts.files = nn::ExpertFiles::numbered();
  spec.router_loss = read_router_loss(config, moe.router);
  spec.router_loss->top_k = integer_of(config, {"num_experts_per_tok"}, 2);
  set_experts(spec, moe, all_layers(spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {"phimoe", "model", {"rotary_emb.inv_freq"},
          build,    false,   {{".block_sparse_moe.", ".mlp."}, {".gate.weight", ".router.weight"}}};
}

}  // namespace easydel::models::zoo::phimoe
