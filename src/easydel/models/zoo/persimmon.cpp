// Persimmon: one fused weight with each head's query, key and value, a squared ReLU, rotary positions on half of each
// head.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/rotated_pairs.h"

namespace easydel::models::zoo::persimmon {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 262144,
                                           .hidden = 4096,
                                           .intermediate = 16384,
                                           .layers = 36,
                                           .heads = 64,
                                           .max_positions = 16384,
                                           .reads_head_dim = false,
                                           .whole_heads = true,
                                           .rope = {.partial = 0.5, .reads_partial = true},
                                           .epsilon_key = "layer_norm_eps",
                                           .epsilon = 1e-5,
                                           .activation = "relu2"});
  settle_odd_rotation(config, *spec.rope);
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = spec.norm.epsilon};
  spec.names.norm = "final_layernorm";
  spec.names.qkv = "query_key_value";
  spec.names.output = "dense";
  spec.names.up = "dense_h_to_4h";
  spec.names.down = "dense_4h_to_h";
  spec.names.q_norm = "q_layernorm";
  spec.names.k_norm = "k_layernorm";
  spec.qkv = QkvLayout::grouped;
  spec.kv_heads = spec.heads;
  spec.gated = false;
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = true;
  if (config.boolean("qk_layernorm", true)) spec.qk_norm = QkNorm::head;
  spec.mlp_dropout = config.number("hidden_dropout", 0.0);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"persimmon", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::persimmon
