// OLMo 2 (arXiv 2501.00656): norms behind each part, and of all queries and all keys.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 50304,
                                           .hidden = 4096,
                                           .intermediate = 11008,
                                           .layers = 32,
                                           .heads = 32,
                                           .max_positions = 2048,
                                           .epsilon = 1e-5,
                                           .padding = 1});
  spec.norm.wide = true;
  spec.names.before_mixer = "";
  spec.names.after_mixer = "post_attention_layernorm";
  spec.names.before_feed = "";
  spec.names.after_feed = "post_feedforward_layernorm";
  spec.qk_norm = QkNorm::whole;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family olmo2() { return {"olmo2", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models
