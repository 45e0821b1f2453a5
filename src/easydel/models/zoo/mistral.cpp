// Mistral (arXiv 2310.06825): Llama with a sliding window in every layer.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::mistral {
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
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.window = window;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"mistral", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::mistral
