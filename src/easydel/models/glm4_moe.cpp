// GLM-4.5 (arXiv 2508.06471): grouped attention that turns half of a head, and the experts of DeepSeek-V3.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 151552,
                                           .hidden = 4096,
                                           .intermediate = 10944,
                                           .layers = 46,
                                           .heads = 96,
                                           .kv_heads = 8,
                                           .max_positions = 131072,
                                           .rope = {.partial = 0.5, .reads_partial = true},
                                           .epsilon = 1e-5});
  spec.qkv_bias = config.boolean("attention_bias", false);
  if (config.boolean("use_qk_norm", false)) spec.qk_norm = QkNorm::head;
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"n_routed_experts", "num_local_experts"}, 128),
                           config.integer("num_experts_per_tok", 8), integer_of(config, {"moe_intermediate_size"}, 1408));
  read_corrected_router(config, moe, 1, 1, true, 1.0);
  moe.shared_inner = moe.experts.inner * integer_of(config, {"n_shared_experts"}, 1);
  set_experts(spec, moe, read_sparse_layers(config, spec, 1));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family glm4_moe() {
  return {.model_type = "glm4_moe",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .extra_layers = true};
}

}  // namespace easydel::models
