#include "easydel/models/olmo_keys.h"

namespace easydel::models {

DecoderSpec read_olmo2(const ConfigReader& config, const DecoderDefaults& defaults) {
  DecoderSpec spec = read_decoder(config, defaults);
  spec.norm.wide = true;
  spec.names.before_mixer = "";
  spec.names.after_mixer = "post_attention_layernorm";
  spec.names.before_feed = "";
  spec.names.after_feed = "post_feedforward_layernorm";
  spec.qk_norm = QkNorm::whole;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  return spec;
}

}  // namespace easydel::models
