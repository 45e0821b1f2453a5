// Solar Open: Llama's attention, and in every layer the experts of DeepSeek-V3.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::solar_open {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 196608,
                                           .hidden = 4096,
                                           .intermediate = 1280,
                                           .layers = 48,
                                           .heads = 64,
                                           .kv_heads = 8,
                                           .head_dim = 128,
                                           .max_positions = 131072,
                                           .rope = {.theta = 1e6},
                                           .epsilon = 1e-5});
  spec.qkv_bias = config.boolean("attention_bias", false);
  set_corrected_experts(config, spec, {.experts = 128, .inner = 1280, .factor = 1.0, .first = 0});
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"solar_open", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::solar_open
