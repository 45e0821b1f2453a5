// Gemma 2 (arXiv 2408.00118): norms before and after each part, soft-caps, a sliding window in every second layer.
#include "easydel/models/family.h"
#include "easydel/models/gemma_keys.h"

namespace easydel::models::zoo::gemma2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_gemma2(config, 256000, 8192, true);
  read_gemma2_windows_and_caps(config, spec);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"gemma2", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::gemma2
