// IQuest-Coder: Llama with other defaults.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::iquestcoder {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 76800,
                                           .hidden = 5120,
                                           .intermediate = 27648,
                                           .layers = 80,
                                           .heads = 40,
                                           .kv_heads = 8,
                                           .head_dim = 128,
                                           .max_positions = 131072,
                                           .whole_heads = true,
                                           .epsilon = 1e-5});
  if (config.find("clip_qkv")) config.refuse_key("clip_qkv", "is not built for this family", "write null");
  if (config.boolean("use_sliding_window", false))
    config.refuse_key("use_sliding_window", "true is not built for this family", "write false");
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"iquestcoder", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::iquestcoder
