// Apertus (arXiv 2509.14233): queries and keys are normalized per head; xIELU without a gate.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::apertus {
namespace {

// Used if config.json has no rope_parameters.
Value usual_rope() {
  Value rope = Value::map();
  rope.set("rope_type", Value::text("llama3"));
  rope.set("rope_theta", Value::number(12e6));
  rope.set("factor", Value::number(8));
  rope.set("original_max_position_embeddings", Value::integer(8192));
  rope.set("low_freq_factor", Value::number(1));
  rope.set("high_freq_factor", Value::number(4));
  return rope;
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  const Value rope = usual_rope();
  DecoderSpec spec = read_decoder(config, {.vocabulary = 131072,
                                           .hidden = 4096,
                                           .intermediate = 14336,
                                           .layers = 32,
                                           .heads = 32,
                                           .max_positions = 65536,
                                           .rope = {.theta = 12e6, .parameters = &rope},
                                           .epsilon = 1e-5,
                                           .activation = "xielu",
                                           .padding = 3});
  spec.names.before_mixer = "attention_layernorm";
  spec.names.before_feed = "feedforward_layernorm";
  spec.qk_norm = QkNorm::head;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.gated = false;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"apertus", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::apertus
