// OLMo 3: OLMo 2 with sliding windows in three of four layers; only the others have scaled rotary positions.
#include "easydel/models/family.h"
#include "easydel/models/olmo_keys.h"

namespace easydel::models::zoo::olmo3 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_olmo2(config, {.vocabulary = 50304,
                                         .hidden = 4096,
                                         .intermediate = 11008,
                                         .layers = 32,
                                         .heads = 32,
                                         .max_positions = 2048,
                                         .rope = {.by_layer_type = true},
                                         .epsilon = 1e-5,
                                         .padding = 1});
  const auto sliding = read_sliding_layers(config, spec.layers.size(), all_but_each(4));
  set_windows(spec, sliding, read_window(config));
  // In older files rope_theta applies only to layers with full attention, as in transformers.
  const auto local = std::make_shared<const ops::RopeSpec>(
      config.rope_of("sliding_attention", spec.head_dim, spec.max_positions, 500000.0));
  spec.rope = config.rope_of("full_attention", spec.head_dim, spec.max_positions, config.number("rope_theta", 500000.0),
                             "rope_scaling");
  for (size_t i = 0; i < spec.layers.size(); ++i)
    if (sliding[i]) spec.layers[i].rope = local;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"olmo3", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::olmo3
