// Granite (arXiv 2408.13359): Llama with multipliers on embeddings, residual sums, scores and logits.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/granite_keys.h"

namespace easydel::models::zoo::granite {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(
      config,
      {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .max_positions = 2048});
  read_granite(config, spec);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"granite", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::granite
