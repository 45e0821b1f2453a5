// Granite 3 MoE with an mlp for every token in parallel with the experts.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/granite_keys.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::granitemoeshared {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  auto spec = std::make_shared<DecoderSpec>(read_decoder(
      config,
      {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .max_positions = 2048}));
  read_granite(config, *spec);
  const nn::MoeSpec moe = read_granite_experts(config, *spec, spec->intermediate);
  spec->router_loss = read_router_loss(config, moe.router);
  read_granite_shared(config, *spec, 0);
  DecoderSpec built = *spec;
  set_granite_experts(built, spec, moe);
  return build_decoder(std::move(built), building);
}

}  // namespace

Family family() {
  return {
      "granitemoeshared", "model", {"rotary_emb.inv_freq"}, build, false, {{".router.layer.weight", ".router.weight"}}};
}

}  // namespace easydel::models::zoo::granitemoeshared
