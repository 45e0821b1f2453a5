// InternLM3: Llama with biases under the keys qkv_bias and bias.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::internlm3 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 128512,
                                           .hidden = 4096,
                                           .intermediate = 10240,
                                           .layers = 48,
                                           .heads = 32,
                                           .kv_heads = 2,
                                           .head_dim = 128,
                                           .max_positions = 32768,
                                           .whole_heads = true,
                                           .epsilon = 1e-5,
                                           .padding = 2});
  const auto flag = [&](const char* key, const char* also) {
    return config.boolean(config.has(key) ? key : also, false);
  };
  spec.qkv_bias = spec.output_bias = flag("attention_bias", "qkv_bias");
  spec.mlp_bias = flag("mlp_bias", "bias");
  if (spec.qkv_bias != spec.mlp_bias) config.refuse_key("qkv_bias", "is not what bias is", "give both the same value");
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"internlm3", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::internlm3
