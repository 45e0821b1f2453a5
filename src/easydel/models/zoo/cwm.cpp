// CWM (arXiv 2510.02387): Llama with windows in all but every fourth layer.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::cwm {
namespace {

// transformers' default if config.json has no rotary positions.
const Value& usual_rope() {
  static const Value rope = [] {
    Value map = Value::map();
    map.set("rope_type", Value::text("llama3"));
    map.set("factor", Value::number(16.0));
    map.set("low_freq_factor", Value::number(1.0));
    map.set("high_freq_factor", Value::number(4.0));
    map.set("original_max_position_embeddings", Value::integer(8192));
    return map;
  }();
  return rope;
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 128256,
                                           .hidden = 6144,
                                           .intermediate = 21504,
                                           .layers = 64,
                                           .heads = 48,
                                           .kv_heads = 8,
                                           .head_dim = 128,
                                           .max_positions = 131072,
                                           .whole_heads = true,
                                           .rope = {.theta = 1e6, .parameters = &usual_rope()},
                                           .epsilon = 1e-5});
  spec.mlp_bias = config.boolean("mlp_bias", false);
  set_windows(spec, read_sliding_layers(config, spec.layers.size(), [](int64_t layer) { return layer % 4 != 0; }),
              read_window(config, 8192));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"cwm", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::cwm
