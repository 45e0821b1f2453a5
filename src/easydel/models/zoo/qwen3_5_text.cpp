// Qwen3.5, text: the gated delta rule in three of four layers. The three positions of a text token are equal, so its
// rotary positions are the usual ones.
#include "easydel/models/family.h"
#include "easydel/models/qwen3_next_keys.h"

namespace easydel::models::zoo::qwen3_5_text {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  return build_decoder(read_qwen3_next(config,
                                       {.vocabulary = 248320,
                                        .hidden = 4096,
                                        .intermediate = 12288,
                                        .layers = 32,
                                        .heads = 16,
                                        .kv_heads = 4,
                                        .head_dim = 256,
                                        .max_positions = 32768},
                                       false),
                       building);
}

}  // namespace

Family family() { return {"qwen3_5_text", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::qwen3_5_text
