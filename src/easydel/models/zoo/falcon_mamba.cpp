// Falcon Mamba (arXiv 2410.05355): Mamba with normalized steps, B and C.
#include "easydel/models/family.h"
#include "easydel/models/recurrent_keys.h"

namespace easydel::models::zoo::falcon_mamba {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  nn::MambaSpec mixer;
  mixer.norms = nn::MambaSpec::Norms::plain;
  mixer.epsilon = config.number("mixer_rms_eps", 1e-6);
  return build_decoder(read_mamba(config, mixer), building);
}

}  // namespace

Family family() { return {"falcon_mamba", "backbone", {}, build, true}; }

}  // namespace easydel::models::zoo::falcon_mamba
