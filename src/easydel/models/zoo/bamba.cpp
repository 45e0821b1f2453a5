// Bamba: Mamba-2 layers with attention in some of them.
#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/recurrent_keys.h"

namespace easydel::models::zoo::bamba {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  // transformers rotates half of each head, whatever the rope parameters say.
  DecoderSpec spec = read_decoder(config, {.vocabulary = 128000,
                                           .hidden = 4096,
                                           .intermediate = 14336,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 8,
                                           .max_positions = 262144,
                                           .rope = {.partial = 0.5, .reads_partial = true, .partial_key = ""},
                                           .padding = 0});
  spec.names.norm = "final_layernorm";
  spec.names.before_feed = "pre_ff_layernorm";
  spec.names.mlp = "feed_forward";
  spec.norm.epsilon = config.number("rms_norm_eps", 1e-5);
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  const nn::LayerBuilder mixer = mixer_builder<nn::Mamba2>("mamba", read_bamba_mixer(config, spec));
  if (const double z = config.number("z_loss_coefficient", 0.0); z > 0.0)
    spec.router_loss = RouterLoss{.asked = true, .logit_z = z};
  std::vector<int64_t> attending;
  if (const Value* indices = config.find("attn_layer_indices")) {
    for (const Value& item : indices->items) {
      const auto index = item.as_int();
      if (!index || *index < 0 || *index >= int64_t(spec.layers.size()))
        config.refuse_key("attn_layer_indices", str(to_json(item), " is not a layer; there are ", spec.layers.size()));
      attending.push_back(*index);
    }
  }
  for (size_t i = 0; i < spec.layers.size(); ++i)
    if (std::find(attending.begin(), attending.end(), int64_t(i)) == attending.end()) spec.layers[i].mixer = mixer;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"bamba", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::bamba
