// BitNet b1.58 (arXiv 2504.12285) as its unpacked weights: Llama with a norm before each output projection.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::bitnet {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 128256,
                                           .hidden = 2560,
                                           .intermediate = 6912,
                                           .layers = 30,
                                           .heads = 20,
                                           .kv_heads = 5,
                                           .max_positions = 2048,
                                           .whole_heads = true,
                                           .rope = {.theta = 500000.0},
                                           .epsilon = 1e-5,
                                           .activation = "relu2"});
  spec.names.mixed_norm = "attn_sub_norm";
  spec.names.inner_norm = "ffn_sub_norm";
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"bitnet", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::bitnet
