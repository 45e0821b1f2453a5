// Command R7B and A: Cohere with sliding windows in three of four layers; only those have rotary positions.
#include "easydel/models/cohere_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::cohere2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_cohere(config, 10000.0);
  const int64_t window = read_window(config);
  const auto sliding =
      read_sliding_layers(config, spec.layers.size(), all_but_each(config.integer("sliding_window_pattern", 4)));
  set_windows(spec, sliding, window);
  if (window == 0)
    for (size_t i = 0; i < sliding.size(); ++i)
      if (sliding[i]) config.refuse_key("sliding_window", "is null, but there are layers of sliding attention");
  for (size_t i = 0; i < spec.layers.size(); ++i) spec.layers[i].rotary = sliding[i];
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"cohere2", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::cohere2
