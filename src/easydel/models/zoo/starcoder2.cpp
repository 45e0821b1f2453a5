// StarCoder2 (arXiv 2402.19173): layer norms, biases, a sliding window, no gate.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::starcoder2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 49152,
                                           .hidden = 3072,
                                           .intermediate = 12288,
                                           .layers = 30,
                                           .heads = 24,
                                           .kv_heads = 2,
                                           .max_positions = 4096,
                                           .epsilon_key = "norm_epsilon",
                                           .activation_key = "hidden_act",
                                           .epsilon = 1e-5,
                                           .activation = "gelu_pytorch_tanh",
                                           .deviation = 0.018042,
                                           .tied = true});
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = spec.norm.epsilon};
  spec.names.up = "c_fc";
  spec.names.down = "c_proj";
  spec.gated = false;
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = config.boolean("use_bias", true);
  const int64_t window = read_window(config, 0);
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.window = window;
  spec.residual_dropout = config.number("residual_dropout", 0.0);
  spec.embedding_dropout = config.number("embedding_dropout", 0.0);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"starcoder2", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::starcoder2
