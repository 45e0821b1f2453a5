// InternLM2 (arXiv 2403.17297): Llama with one fused weight of each kv head's queries, key and value.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::internlm2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 103168,
                                           .hidden = 4096,
                                           .intermediate = 11008,
                                           .layers = 32,
                                           .heads = 32,
                                           .max_positions = 2048,
                                           .reads_head_dim = false,
                                           .padding = 2});
  spec.names.embedding = "tok_embeddings";
  spec.names.before_mixer = "attention_norm";
  spec.names.before_feed = "ffn_norm";
  spec.names.attention = "attention";
  spec.names.qkv = "wqkv";
  spec.names.output = "wo";
  spec.names.mlp = "feed_forward";
  spec.names.gate = "w1";
  spec.names.up = "w3";
  spec.names.down = "w2";
  spec.names.head = "output";
  spec.qkv = QkvLayout::grouped;
  spec.qkv_bias = spec.output_bias = config.boolean("bias", true);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"internlm2", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::internlm2
