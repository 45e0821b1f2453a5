// GLM-5: the experts of GLM-4.5, multi-head latent attention, and an indexer with interleaved rotary positions.
#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/models/family.h"
#include "easydel/models/mla_keys.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::glm_moe_dsa {
namespace {

// Which layers reuse the keys that an earlier layer's indexer chose: indexer_types, otherwise a pattern of F(ull) and
// S(hared) letters or names, otherwise all except every `index_topk_freq`th one from `index_skip_topk_offset` on.
std::vector<bool> read_shared_indexers(const ConfigReader& config, size_t layers) {
  std::string_view key = config.find("indexer_types") ? "indexer_types" : "index_topk_pattern";
  std::vector<std::string> types;
  if (const Value* pattern = config.find(key); pattern && pattern->as_string()) {
    const std::string letters = *pattern->as_string();
    for (const char letter : letters) types.emplace_back(1, letter);
  } else if (pattern) {
    types = config.texts(key);
  } else {
    key = "index_topk_freq";
    const int64_t every = std::max<int64_t>(config.integer(key, 1), 1),
                  offset = config.integer("index_skip_topk_offset", 2);
    for (int64_t i = 0; i < int64_t(layers); ++i)
      types.emplace_back(std::max<int64_t>(i - offset + 1, 0) % every == 0 ? "full" : "shared");
  }
  check_one_a_layer(config, key, types.size(), layers);
  std::vector<bool> out;
  for (const std::string& type : types) {
    if (type != "full" && type != "shared" && type != "F" && type != "S")
      config.refuse_key(key, str("'", type, "' is not known"), "known: full, shared");
    out.push_back(type == "shared" || type == "S");
  }
  if (out.front())
    config.refuse_key(key, "the first layer has no earlier layer to share with", "begin with a full layer");
  return out;
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_latent_decoder(config, {.vocabulary = 154880,
                                                  .hidden = 6144,
                                                  .intermediate = 12288,
                                                  .layers = 78,
                                                  .heads = 64,
                                                  .max_positions = 202752,
                                                  .epsilon = 1e-5});
  nn::MlaSpec mla = read_mla(config, spec, {.q_rank = 2048, .plain_dim = 192, .v_dim = 256});
  read_indexer(config, mla, 32, 128, 2048, true);
  set_mla(spec, mla, read_shared_indexers(config, spec.layers.size()));
  set_corrected_experts(config, spec, {});
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "glm_moe_dsa",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .extra_layers = true};
}

}  // namespace easydel::models::zoo::glm_moe_dsa
