// GLM-4 (arXiv 2406.12793): interleaved rotary positions on half of each head; gate and up in one weight.
#include "easydel/models/family.h"
#include "easydel/models/glm_keys.h"

namespace easydel::models::zoo::glm {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  return build_decoder(read_glm(config), building);
}

}  // namespace

Family family() { return {"glm", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::glm
