// DeepSeek-V3.2 (arXiv 2512.02556): DeepSeek-V3 whose tokens attend only to the keys that an indexer chooses.
#include "easydel/models/family.h"
#include "easydel/models/mla_keys.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::deepseek_v32 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_latent_decoder(config, {.vocabulary = 129280,
                                                  .hidden = 7168,
                                                  .intermediate = 18432,
                                                  .layers = 61,
                                                  .heads = 128,
                                                  .max_positions = 163840});
  nn::MlaSpec mla = read_mla(config, spec, {.q_rank = 1536});
  read_indexer(config, mla, 64, 128, 2048, false);
  set_mla(spec, mla);
  set_corrected_experts(config, spec, {.groups = 8, .top_groups = 4});
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "deepseek_v32",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .extra_layers = true};
}

}  // namespace easydel::models::zoo::deepseek_v32
