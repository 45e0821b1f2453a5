// Xerxes, EasyDeL's own research model: Gemma 2's norms, soft-capped logits and sliding windows, a softmax over the
// chosen experts; its flags (xe_kvnorm, xe_mlpnorm, xe_moe, swish_run) make it a Llama with normalized queries and
// keys.
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::xerxes {
namespace {

// Every second layer has a window, unless queries and keys are normalized. window_pattern overrides this; layers with a
// window by that pattern have unscaled rotary positions.
void read_windows(const ConfigReader& config, DecoderSpec& spec, bool normed) {
  const int64_t pattern = config.integer("window_pattern", 0);
  if (config.find("window_pattern")) config.positive("window_pattern", pattern);
  const auto by_rule = [&](int64_t i) { return pattern > 0 ? (i + 1) % pattern != 0 : !normed && i % 2 == 0; };
  const int64_t window = pattern > 0 ? read_window(config, 0) : 4096;
  const std::vector<bool> sliding = read_sliding_layers(config, spec.layers.size(), by_rule);
  const auto plain = std::make_shared<const ops::RopeSpec>(
      ConfigReader(Value::map(), config.where()).rope(spec.head_dim, spec.max_positions));
  for (size_t i = 0; i < sliding.size(); ++i) {
    const bool slides = by_rule(int64_t(i)) && window > 0;
    if (sliding[i] != slides && config.find("layer_types"))
      config.refuse_key("layer_types", str("differs from window_pattern and xe_kvnorm in layer ", i), "leave it out");
    if (!slides) continue;
    spec.layers[i].attention.window = window;
    if (pattern > 0) spec.layers[i].rope = plain;
  }
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 256128,
                                           .hidden = 4096,
                                           .intermediate = 16384,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 8,
                                           .head_dim = 144,
                                           .max_positions = 16384});
  spec.padding = -1;
  const bool normed = config.boolean("xe_kvnorm", false), experts = config.boolean("xe_moe", true);
  const bool mlp_norms = config.boolean("xe_mlpnorm", false), swish = config.boolean("swish_run", false);
  if (experts && swish) config.refuse_key("swish_run", "true goes with xe_moe: false alone", "experts are of gelu");
  spec.activation = swish ? ops::Activation::silu : ops::Activation::gelu_tanh;
  if (!normed || experts || mlp_norms) {
    spec.names.after_mixer = "post_attention_layernorm";
    spec.names.before_feed = "pre_feedforward_layernorm";
    spec.names.after_feed = "post_feedforward_layernorm";
  }
  if (normed) spec.qk_norm = QkNorm::head;
  if (!normed || mlp_norms) spec.embedding_multiplier = std::sqrt(double(spec.hidden));
  if (!normed || experts) spec.logit_softcap = 30.0;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  read_windows(config, spec, normed);
  if (experts) {
    nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_local_experts"}, 4),
                             integer_of(config, {"num_experts_per_tok"}, 2), spec.intermediate);
    moe.router.scoring = ops::Scoring::softmax_of_chosen;
    set_experts(spec, moe, all_layers(spec));
  }
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"xerxes", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::xerxes
