// LFM2 (arXiv 2511.23404): gated short convolutions with attention in some layers.
#include "easydel/models/family.h"
#include "easydel/models/lfm2_keys.h"

namespace easydel::models::zoo::lfm2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_lfm2(config, {.vocabulary = 65536,
                                        .hidden = 2560,
                                        .intermediate = 12288,
                                        .layers = 32,
                                        .heads = 32,
                                        .kv_heads = 8,
                                        .max_positions = 128000,
                                        .padding = 0});
  if (config.has("block_ff_dim")) spec.intermediate = read_size(config, "block_ff_dim", 0);
  if (config.boolean("block_auto_adjust_ff_dim", true)) {
    // Two thirds, by a factor, in whole multiples.
    spec.intermediate = 2 * spec.intermediate / 3;
    if (config.find("block_ffn_dim_multiplier") || !config.has("block_ffn_dim_multiplier")) {
      const int64_t multiple = read_size(config, "block_multiple_of", 256);
      const int64_t size = int64_t(config.number("block_ffn_dim_multiplier", 1.0) * double(spec.intermediate));
      spec.intermediate = (size + multiple - 1) / multiple * multiple;
    }
  }
  spec.tied = config.boolean("tie_embedding", config.boolean("tie_word_embeddings", true));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"lfm2", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::lfm2
