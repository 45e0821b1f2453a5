// A family outside this repository: Llama with layer norms and soft-capped logits.
#include "easydel/elarge/plugin.h"
#include "easydel/elarge/plugin_abi.h"
#include "easydel/models/decoder_keys.h"

namespace models = easydel::models;

namespace {

std::unique_ptr<models::Model> build(const models::ConfigReader& config, easydel::nn::Building& building) {
  models::DecoderSpec spec = models::read_decoder(
      config,
      {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .max_positions = 2048});
  spec.norm = {.kind = easydel::nn::NormKind::layer, .epsilon = spec.norm.epsilon};
  spec.logit_softcap = config.number("final_logit_softcapping", 0.0);
  return models::build_decoder(std::move(spec), building);
}

}  // namespace

extern "C" const char* easydel_plugin_abi() { return easydel::elarge::kPluginAbi; }

extern "C" void easydel_plugin(easydel::elarge::Registry& registry) {
  registry.add({.model_type = "llama_layernorm", .base_prefix = "model", .ignored = {}, .build = build},
               {.model_type = "llama_layernorm", .architectures = {"LlamaLayerNormForCausalLM"}});
}
