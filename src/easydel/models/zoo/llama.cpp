// Llama (arXiv 2302.13971): the decoder in terms of which most others are described.
#include <cmath>

#include "easydel/models/decoder.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::llama {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 32000,
                                           .hidden = 4096,
                                           .intermediate = 11008,
                                           .layers = 32,
                                           .heads = 32,
                                           .max_positions = 2048,
                                           .whole_heads = true});
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"llama", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::llama
