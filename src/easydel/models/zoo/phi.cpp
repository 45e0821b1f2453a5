// Phi-1 and Phi-2 (arXiv 2306.11644): attention and mlp in parallel after one layer norm, biases everywhere.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/rotated_pairs.h"

namespace easydel::models::zoo::phi {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 51200,
                                           .hidden = 2048,
                                           .intermediate = 8192,
                                           .layers = 24,
                                           .heads = 32,
                                           .max_positions = 2048,
                                           .rope = {.partial = 0.5, .reads_partial = true},
                                           .epsilon_key = "layer_norm_eps",
                                           .epsilon = 1e-5,
                                           .activation = "gelu_new"});
  settle_odd_rotation(config, *spec.rope);
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = spec.norm.epsilon};
  spec.names.before_feed = "";
  spec.names.norm = "final_layernorm";
  spec.names.output = "dense";
  spec.names.up = "fc1";
  spec.names.down = "fc2";
  spec.names.q_norm = "q_layernorm";
  spec.names.k_norm = "k_layernorm";
  spec.parallel_residual = true;
  spec.gated = false;
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = spec.head_bias = true;
  if (config.boolean("qk_layernorm", false)) spec.qk_norm = QkNorm::head;
  spec.residual_dropout = config.number("resid_pdrop", 0.0);
  spec.embedding_dropout = config.number("embd_pdrop", 0.0);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"phi", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::phi
