// dots.llm1 (arXiv 2506.05767): normalized queries and keys, and the experts of DeepSeek-V3.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::dots1 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 152064,
                                           .hidden = 4608,
                                           .intermediate = 10944,
                                           .layers = 62,
                                           .heads = 32,
                                           .kv_heads = 32,
                                           .max_positions = 2048});
  spec.qk_norm = QkNorm::head;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  const int64_t window = read_window(config), from = config.integer("max_window_layers", 62);
  set_windows(spec, read_sliding_layers(config, spec.layers.size(), [&](int64_t i) { return window > 0 && i >= from; }),
              window);
  const char* const experts = config.find("num_local_experts") ? "num_local_experts" : "n_routed_experts";
  nn::MoeSpec moe = moe_of(config, spec, needed(config, experts), needed(config, "num_experts_per_tok"),
                           integer_of(config, {"moe_intermediate_size"}, 1408));
  read_corrected_router(config, moe, 1, 1, false, 1.0);
  moe.shared_inner = moe.experts.inner * needed(config, "n_shared_experts");
  set_experts(spec, moe, read_sparse_layers(config, spec, 0));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"dots1", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::dots1
