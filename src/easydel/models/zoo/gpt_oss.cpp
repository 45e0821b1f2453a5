// gpt-oss (arXiv 2508.10925): attention sinks, sliding windows in every other layer, clamped experts with biases,
// optionally with MXFP4 weights.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::gpt_oss {
namespace {

// transformers' default if config.json has no rotary positions.
const Value& usual_rope() {
  static const Value rope = [] {
    Value map = Value::map();
    map.set("rope_type", Value::text("yarn"));
    map.set("factor", Value::number(32.0));
    map.set("beta_fast", Value::number(32.0));
    map.set("beta_slow", Value::number(1.0));
    map.set("truncate", Value::boolean(false));
    map.set("original_max_position_embeddings", Value::integer(4096));
    return map;
  }();
  return rope;
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 201088,
                                           .hidden = 2880,
                                           .intermediate = 2880,
                                           .layers = 36,
                                           .heads = 64,
                                           .kv_heads = 8,
                                           .head_dim = 64,
                                           .max_positions = 131072,
                                           .rope = {.theta = 150000.0, .parameters = &usual_rope()},
                                           .epsilon = 1e-5});
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", true);
  set_windows(spec, read_sliding_layers(config, spec.layers.size(), [](int64_t i) { return i % 2 == 0; }),
              read_window(config, 128));
  for (DecoderLayerSpec& layer : spec.layers) layer.sinks = true;
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_local_experts", "num_experts"}, 128),
                           config.integer("num_experts_per_tok", 4), spec.intermediate);
  moe.router.scoring = ops::Scoring::softmax_of_chosen;
  moe.router_names.weight = "router.weight";
  moe.router_names.bias = "router.bias";
  moe.experts.bias = true;
  moe.experts.clamp_limit = config.number("swiglu_limit", 7.0);
  moe.experts.clamp_alpha = config.number("swiglu_alpha", 1.702);
  nn::ExpertFiles plain = nn::ExpertFiles::fused("experts.gate_up_proj", "experts.down_proj");
  plain.gate_bias = plain.up_bias = "experts.gate_up_proj_bias";
  plain.down_bias = "experts.down_proj_bias";
  plain.interleaved = plain.transposed = true;
  nn::ExpertFiles packed = plain;
  packed.transposed = false;
  packed.packing = nn::Packing::mxfp4;
  moe.experts.files = {plain, packed};
  spec.router_loss = read_router_loss(config, moe.router);
  set_experts(spec, moe, all_layers(spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "gpt_oss", .base_prefix = "model", .ignored = {"rotary_emb.inv_freq"}, .build = build};
}

}  // namespace easydel::models::zoo::gpt_oss
