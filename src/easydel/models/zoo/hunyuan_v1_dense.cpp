// Hunyuan, dense: queries and keys are normalized after their rotation.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::hunyuan_v1_dense {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 290943,
                                           .hidden = 4096,
                                           .intermediate = 11008,
                                           .layers = 32,
                                           .heads = 32,
                                           .max_positions = 2048,
                                           .rope = {.ntk_alpha = true},
                                           .epsilon = 1e-5,
                                           .padding = 0});
  spec.names.q_norm = "query_layernorm";
  spec.names.k_norm = "key_layernorm";
  spec.qk_norm = QkNorm::head;
  spec.qk_norm_after_rope = true;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"hunyuan_v1_dense", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::hunyuan_v1_dense
