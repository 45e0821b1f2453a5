// EXAONE 4 (arXiv 2507.11407): norms after each part and sliding windows in some layers; only those have rotary
// positions.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::exaone4 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 102400,
                                           .hidden = 4096,
                                           .intermediate = 16384,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 32,
                                           .max_positions = 2048,
                                           .epsilon = 1e-5});
  spec.names.before_mixer = "";
  spec.names.after_mixer = "post_attention_layernorm";
  spec.names.before_feed = "";
  spec.names.after_feed = "post_feedforward_layernorm";
  spec.qk_norm = QkNorm::head;
  const int64_t window = read_window(config);
  if (window == 0 && !config.find("layer_types"))
    config.refuse_key("layer_types", "is missing", "without a sliding_window transformers needs it");
  // Published files have the pattern in letters in addition to the equivalent list.
  const auto by_pattern = [&](int64_t layer) {
    return all_but_each(config.integer("sliding_window_pattern", 4))(layer);
  };
  const auto sliding = read_sliding_layers(config, spec.layers.size(), by_pattern);
  set_windows(spec, sliding, window);
  for (size_t i = 0; i < spec.layers.size(); ++i) spec.layers[i].rotary = window == 0 || sliding[i];
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"exaone4", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::exaone4
