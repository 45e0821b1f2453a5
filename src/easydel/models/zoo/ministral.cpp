// Ministral: Mistral with a configured choice of full attention or a sliding window for each layer.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::ministral {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 32000,
                                           .hidden = 4096,
                                           .intermediate = 14336,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 8,
                                           .max_positions = 4096 * 32});
  const int64_t window = read_window(config);
  const auto sliding = read_sliding_layers(config, spec.layers.size(), [&](int64_t) { return window > 0; });
  set_windows(spec, sliding, window);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"ministral", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::ministral
