// VaultGemma (arXiv 2510.15001): Gemma 2 without the norms after each part.
#include "easydel/models/family.h"
#include "easydel/models/gemma_keys.h"

namespace easydel::models::zoo::vaultgemma {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_gemma2(config, 256000, 8192, false);
  read_gemma2_windows_and_caps(config, spec);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"vaultgemma", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::vaultgemma
