// Granite 3 MoE: Granite with experts in every layer, chosen before their softmax.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/granite_keys.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::granitemoe {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(
      config,
      {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .max_positions = 2048});
  read_granite(config, spec);
  const nn::MoeSpec moe = read_granite_experts(config, spec, spec.intermediate);
  spec.router_loss = read_router_loss(config, moe.router);
  set_experts(spec, moe, all_layers(spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {"granitemoe", "model", {"rotary_emb.inv_freq"}, build, false, {{".router.layer.weight", ".router.weight"}}};
}

}  // namespace easydel::models::zoo::granitemoe
