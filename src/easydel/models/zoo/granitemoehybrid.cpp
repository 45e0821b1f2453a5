// Granite 4: Mamba-2 with attention in some layers; an mlp for every token, in some models in parallel with experts.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/granite_keys.h"
#include "easydel/models/moe_keys.h"
#include "easydel/models/recurrent_keys.h"

namespace easydel::models::zoo::granitemoehybrid {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  auto spec = std::make_shared<DecoderSpec>(
      read_decoder(config, {.vocabulary = 32000,
                            .hidden = 4096,
                            .intermediate = 11008,
                            .layers = 32,
                            .heads = 32,
                            .max_positions = 2048,
                            .rope = {.none = config.text("position_embedding_type", "none") != "rope"}}));
  read_granite(config, *spec);
  const int64_t experts = config.integer("num_local_experts", 8), inner = spec->intermediate;
  read_granite_shared(config, *spec, 1024);
  config.positive("shared_intermediate_size", spec->intermediate);

  std::vector<std::string> kinds = read_kinds(config, config.find("layer_types") ? "layer_types" : "layers_block_type",
                                              {"linear_attention", "full_attention"}, spec->layers.size());
  if (kinds.empty()) kinds.assign(spec->layers.size(), "linear_attention");
  const nn::Mamba2Spec mamba = read_bamba_mixer(config, *spec);
  DecoderSpec built = *spec;
  for (size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i] == "linear_attention") built.layers[i].mixer = mixer_builder<nn::Mamba2>("mamba", mamba);
  if (experts > 0) {
    const nn::MoeSpec moe = read_granite_experts(config, *spec, inner);
    built.router_loss = read_router_loss(config, moe.router);
    set_granite_experts(built, spec, moe);
  }
  return build_decoder(std::move(built), building);
}

}  // namespace

Family family() {
  return {
      "granitemoehybrid", "model", {"rotary_emb.inv_freq"}, build, false, {{".router.layer.weight", ".router.weight"}}};
}

}  // namespace easydel::models::zoo::granitemoehybrid
