// Ministral 3: Mistral whose queries grow with the position.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::ministral3 {
namespace {

// Used if config.json has no rope_parameters.
Value usual_rope() {
  Value rope = Value::map();
  rope.set("rope_type", Value::text("yarn"));
  rope.set("rope_theta", Value::number(1e6));
  rope.set("factor", Value::number(16));
  rope.set("original_max_position_embeddings", Value::integer(16384));
  rope.set("beta_fast", Value::number(32));
  rope.set("beta_slow", Value::number(1));
  rope.set("mscale", Value::number(1));
  rope.set("mscale_all_dim", Value::number(1));
  rope.set("llama_4_scaling_beta", Value::number(0.1));
  return rope;
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  const Value rope = usual_rope();
  DecoderSpec spec = read_decoder(config, {.vocabulary = 131072,
                                           .hidden = 4096,
                                           .intermediate = 14336,
                                           .layers = 34,
                                           .heads = 32,
                                           .kv_heads = 8,
                                           .head_dim = 128,
                                           .max_positions = 262144,
                                           .rope = {.parameters = &rope},
                                           .epsilon = 1e-5,
                                           .padding = 11});
  const ConfigReader parameters = config.rope_parameters(&rope);
  const QueryScaling query_scaling{parameters.number("llama_4_scaling_beta", 0.0),
                                   parameters.integer("original_max_position_embeddings", spec.max_positions), 0};
  const int64_t window = read_window(config, 0);
  for (DecoderLayerSpec& layer : spec.layers) {
    layer.attention.window = window;
    layer.query_scaling = query_scaling;
  }
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"ministral3", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::ministral3
