// Command R7B and A: Cohere with windows in three of four layers; only those know positions.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 256000,
                                           .hidden = 8192,
                                           .intermediate = 22528,
                                           .layers = 40,
                                           .heads = 64,
                                           .max_positions = 8192,
                                           .epsilon_key = "layer_norm_eps",
                                           .epsilon = 1e-5,
                                           .padding = 0,
                                           .tied = true});
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = spec.norm.epsilon, .bias = false};
  spec.names.before_feed = "";
  spec.parallel_residual = true;
  spec.rope->interleaved = true;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.logit_multiplier = config.number("logit_scale", 0.0625);
  const int64_t window = read_window(config);
  const auto sliding =
      read_sliding_layers(config, spec.layers.size(), all_but_each(config.integer("sliding_window_pattern", 4)));
  set_windows(spec, sliding, window);
  if (window == 0)
    for (size_t i = 0; i < sliding.size(); ++i)
      if (sliding[i]) config.refuse_key("sliding_window", "is null, but there are layers of sliding attention");
  for (size_t i = 0; i < spec.layers.size(); ++i) spec.layers[i].turned = sliding[i];
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family cohere2() { return {"cohere2", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models
