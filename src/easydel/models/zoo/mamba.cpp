// Mamba (arXiv 2312.00752): a stack of selective state spaces.
#include "easydel/models/family.h"
#include "easydel/models/recurrent_keys.h"

namespace easydel::models::zoo::mamba {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  nn::MambaSpec mixer;
  return build_decoder(read_mamba(config, mixer), building);
}

}  // namespace

Family family() { return {"mamba", "backbone", {}, build, true}; }

}  // namespace easydel::models::zoo::mamba
