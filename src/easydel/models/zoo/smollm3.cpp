// SmolLM3: Llama with no rotary positions in every fourth layer.
#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::smollm3 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 128256,
                                           .hidden = 2048,
                                           .intermediate = 11008,
                                           .layers = 36,
                                           .heads = 16,
                                           .kv_heads = 4,
                                           .max_positions = 32768,
                                           .rope = {.theta = 2e6},
                                           .padding = 128004,
                                           .tied = true});
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  auto rotary = config.integers("no_rope_layers");  // 1: the layer has rotary positions
  const int64_t interval = config.integer("no_rope_layer_interval", 4);
  config.positive("no_rope_layer_interval", interval);
  if (rotary.empty())
    for (size_t i = 0; i < spec.layers.size(); ++i) rotary.push_back((int64_t(i) + 1) % interval != 0);
  if (rotary.size() < spec.layers.size())
    check_one_a_layer(config, "no_rope_layers", rotary.size(), spec.layers.size());
  const int64_t window = config.boolean("use_sliding_window", false) ? read_window(config, 0) : 0;
  set_windows(
      spec,
      read_sliding_layers(config, spec.layers.size(), [&](int64_t i) { return window > 0 && rotary[size_t(i)] == 0; }),
      window);
  for (size_t i = 0; i < spec.layers.size(); ++i) spec.layers[i].rotary = rotary[i] != 0;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"smollm3", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::smollm3
