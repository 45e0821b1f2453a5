// Example: Llama with layer norms, a window in all but every second layer, and soft-capped logits.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::example {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 32000,
                                           .hidden = 4096,
                                           .intermediate = 11008,
                                           .layers = 32,
                                           .heads = 32,
                                           .max_positions = 2048,
                                           .epsilon_key = "layer_norm_eps"});
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = spec.norm.epsilon};
  set_windows(spec, read_sliding_layers(config, spec.layers.size(), all_but_each(2)), read_window(config));
  spec.logit_softcap = config.number("final_logit_softcapping", 0.0);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"example", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::example
