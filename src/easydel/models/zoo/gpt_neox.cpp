// GPT-NeoX and Pythia (arXiv 2204.06745): attention and mlp in parallel, each after its own layer norm; rotary
// positions on a part of each head.
#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::gpt_neox {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(
      config,
      {.vocabulary = 50432,
       .hidden = 6144,
       .intermediate = 24576,
       .layers = 44,
       .heads = 64,
       .max_positions = 2048,
       .reads_head_dim = false,
       .whole_heads = true,
       .rope = {.partial = 0.25, .reads_partial = true, .theta_key = "rotary_emb_base", .partial_key = "rotary_pct"},
       .epsilon_key = "layer_norm_eps",
       .epsilon = 1e-5,
       .activation = "gelu"});
  // transformers would rotate as many dimensions as such a head has, of heads whose size follows from hidden_size.
  if (const auto given = config.integer("head_dim"); given && *given != spec.head_dim)
    config.refuse_key("head_dim", str(*given, " is not hidden_size / num_attention_heads, ", spec.head_dim));
  spec.names = {.base = "gpt_neox",
                .embedding = "embed_in",
                .norm = "final_layer_norm",
                .attention = "attention",
                .qkv = "query_key_value",
                .output = "dense",
                .up = "dense_h_to_4h",
                .down = "dense_4h_to_h",
                .head = "embed_out"};
  spec.padding = -1;  // every row of the embedding is trained
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = spec.norm.epsilon};
  spec.qkv = QkvLayout::grouped;
  spec.kv_heads = spec.heads;
  spec.parallel_residual = config.boolean("use_parallel_residual", true);
  spec.gated = false;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", true);
  spec.mlp_bias = true;
  spec.residual_dropout = spec.embedding_dropout = config.number("hidden_dropout", 0.0);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {"gpt_neox", "gpt_neox", {"attention.bias", "attention.masked_bias", "rotary_emb.inv_freq"},
          build,      false,      {{"embed_out.", "lm_head."}}};
}

}  // namespace easydel::models::zoo::gpt_neox
