#include "easydel/models/lfm2_keys.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/nn/gated_convolution.h"

namespace easydel::models {

DecoderSpec read_lfm2(const ConfigReader& config, DecoderDefaults defaults) {
  defaults.rope.theta = 1e6;
  DecoderSpec spec = read_decoder(config, defaults);
  spec.names.norm = "embedding_norm";
  spec.names.before_mixer = "operator_norm";
  spec.names.before_feed = "ffn_norm";
  spec.names.output = "out_proj";
  spec.names.q_norm = "q_layernorm";
  spec.names.k_norm = "k_layernorm";
  spec.names.mlp = "feed_forward";
  spec.names.gate = "w1";
  spec.names.up = "w3";
  spec.names.down = "w2";
  spec.norm.epsilon = config.number("norm_eps", 1e-5);
  spec.qk_norm = QkNorm::head;
  spec.activation = ops::Activation::silu;

  std::vector<std::string> kinds = read_kinds(config, "layer_types", {"conv", "full_attention"}, spec.layers.size());
  if (kinds.empty()) {
    std::vector<int64_t> attending;
    const Value* indices = config.find("full_attn_idxs");
    for (size_t i = 0; indices && i < indices->items.size(); ++i)
      attending.push_back(indices->items[i].as_int().value_or(-1));
    for (size_t i = 0; i < spec.layers.size(); ++i)
      kinds.push_back(!indices || std::find(attending.begin(), attending.end(), int64_t(i)) != attending.end()
                          ? "full_attention"
                          : "conv");
  }
  const int64_t width = read_size(config, "conv_L_cache", 3);
  const bool bias = config.boolean("conv_bias", false);
  for (size_t i = 0; i < spec.layers.size(); ++i)
    if (kinds[i] == "conv")
      spec.layers[i].mixer = [width, bias, size = spec.hidden, deviation = spec.deviation](const nn::Scope& block,
                                                                                           int64_t layer) {
        return std::make_unique<nn::GatedConvolution>(block / "conv", size, width, bias, deviation, layer);
      };
  return spec;
}

}  // namespace easydel::models
