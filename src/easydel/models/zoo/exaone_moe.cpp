// K-EXAONE: EXAONE 4 with norms before each part, and the experts of DeepSeek-V3.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::exaone_moe {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 102400,
                                           .hidden = 4096,
                                           .intermediate = 16384,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 32,
                                           .max_positions = 2048,
                                           .epsilon = 1e-5,
                                           .padding = 0});
  spec.qk_norm = QkNorm::head;
  const int64_t window = read_window(config);
  // Published files have the pattern in letters in addition to the equivalent list.
  const auto by_pattern = [&](int64_t layer) {
    return all_but_each(window == 0 ? 0 : config.integer("sliding_window_pattern", 4))(layer);
  };
  const auto sliding = read_sliding_layers(config, spec.layers.size(), by_pattern);
  set_windows(spec, sliding, window);
  // Layers with full attention have no rotary positions, unless all layers are such.
  for (size_t i = 0; i < spec.layers.size(); ++i) spec.layers[i].rotary = window == 0 || sliding[i];
  nn::MoeSpec moe =
      moe_of(config, spec, integer_of(config, {"num_experts"}, 64), config.integer("num_experts_per_tok", 8),
             integer_of(config, {"moe_intermediate_size"}, 1024));
  read_corrected_router(config, moe, 1, 1, true, 2.5);
  moe.router_names.correction = "e_score_correction_bias";
  moe.shared_inner = moe.experts.inner * integer_of(config, {"num_shared_experts"}, 1);
  set_experts(spec, moe, read_sparse_layers(config, spec, 1));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "exaone_moe",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .spellings = {{".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias"}},
          .ignored_parts = {"mtp."}};
}

}  // namespace easydel::models::zoo::exaone_moe
