// ERNIE 4.5 with experts: softmax scores with a correction bias, weights normalized with a lower bound on their sum.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::ernie4_5_moe {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 103424,
                                           .hidden = 2560,
                                           .intermediate = 12288,
                                           .layers = 28,
                                           .heads = 20,
                                           .kv_heads = 4,
                                           .max_positions = 131072,
                                           .rope = {.theta = 500000.0},
                                           .epsilon = 1e-5,
                                           .padding = 0,
                                           .tied = true});
  spec.rope->interleaved = true;
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = spec.head_bias = config.boolean("use_bias", false);
  spec.attention_dropout = 0.0;
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"moe_num_experts", "num_experts"}, 64),
                           integer_of(config, {"moe_k", "num_experts_per_tok"}, 6),
                           integer_of(config, {"moe_intermediate_size"}, 1536));
  moe.exact_router = true;
  moe.router.normalise = true;
  moe.router.norm_least = config.number("moe_norm_min", 1e-12);
  moe.router_names.correction = "moe_statics.e_score_correction_bias";
  moe.router_names.correction_is_row = true;
  moe.shared_inner = moe.experts.inner * config.integer("moe_num_shared_experts", 2);
  moe.shared_bias = spec.mlp_bias;
  const auto layers = int64_t(spec.layers.size());
  const int64_t from = config.integer("moe_layer_start_index", 1), step = config.integer("moe_layer_interval", 1);
  const int64_t last = config.integer("moe_layer_end_index", -1);
  config.positive("moe_layer_interval", step);
  std::vector<bool> sparse;
  for (int64_t i = 0; i < layers; ++i) sparse.push_back((i + 1) % step == 0 && i >= from && (last == -1 || i <= last));
  spec.router_loss = read_router_loss(config, moe.router);
  set_experts(spec, moe, sparse);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "ernie4_5_moe",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .tied_by_default = true,
          .spellings = {{".mlp.moe_statics.", ".mlp.gate.moe_statics."}},
          .ignored_parts = {"mtp"}};
}

}  // namespace easydel::models::zoo::ernie4_5_moe
