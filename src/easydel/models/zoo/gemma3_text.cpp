// Gemma 3, text (arXiv 2503.19786): Gemma 2 with normalized queries and keys, and two rotary bases.
#include "easydel/models/family.h"
#include "easydel/models/gemma_keys.h"

namespace easydel::models::zoo::gemma3_text {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_gemma2(config, 262208, 131072, true, {.by_layer_type = true});
  spec.qk_norm = QkNorm::head;
  const auto sliding =
      read_sliding_layers(config, spec.layers.size(), all_but_each(config.integer("sliding_window_pattern", 6)));
  // EmbeddingGemma's attention is bidirectional, with half of the window on each side.
  spec.causal = !config.boolean("use_bidirectional_attention", false);
  const int64_t window = read_window(config);
  set_windows(spec, sliding, spec.causal || window == 0 ? window : window / 2 + 1);
  const auto local = std::make_shared<const ops::RopeSpec>(config.rope_of(
      "sliding_attention", spec.head_dim, spec.max_positions, config.number("rope_local_base_freq", 10000.0)));
  spec.rope = config.rope_of("full_attention", spec.head_dim, spec.max_positions, config.number("rope_theta", 1e6),
                             "rope_scaling");
  for (size_t i = 0; i < spec.layers.size(); ++i)
    if (sliding[i]) spec.layers[i].rope = local;
  spec.logit_softcap = config.number("final_logit_softcapping", 0.0);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"gemma3_text", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::gemma3_text
