// OLMo 2 (arXiv 2501.00656): norms after each part, and over all queries and over all keys.
#include "easydel/models/family.h"
#include "easydel/models/olmo_keys.h"

namespace easydel::models::zoo::olmo2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_olmo2(config, {.vocabulary = 50304,
                                         .hidden = 4096,
                                         .intermediate = 11008,
                                         .layers = 32,
                                         .heads = 32,
                                         .max_positions = 2048,
                                         .epsilon = 1e-5,
                                         .padding = 1});
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"olmo2", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::olmo2
