// OLMo (arXiv 2402.00838): layer norms without parameters; queries, keys and values may be clamped.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::olmo {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 50304,
                                           .hidden = 4096,
                                           .intermediate = 11008,
                                           .layers = 32,
                                           .heads = 32,
                                           .max_positions = 2048,
                                           .padding = 1});
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = 1e-5, .bias = false, .weight = false};
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.clip_qkv = config.number("clip_qkv", 0.0);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"olmo", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::olmo
