// Command R: attention and mlp in parallel after one layer norm, interleaved rotary positions, scaled logits.
#include "easydel/models/cohere_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::cohere {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_cohere(config, 500000.0);
  if (config.boolean("use_qk_norm", false)) spec.qk_norm = QkNorm::each_head;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"cohere", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::cohere
