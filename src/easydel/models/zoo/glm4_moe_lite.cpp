// GLM-4.7-Flash: multi-head latent attention with the experts of GLM-4.5.
#include "easydel/models/family.h"
#include "easydel/models/mla_keys.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::glm4_moe_lite {
namespace {

// transformers has two names for the rotated part of a head.
Value with_one_name(const ConfigReader& config) {
  Value out = config.document();
  const Value* const rotary = config.find("head_dim");
  if (rotary && !config.find("qk_rope_head_dim")) out.set("qk_rope_head_dim", *rotary);
  return out;
}

std::unique_ptr<Model> build(const ConfigReader& given, nn::Building& building) {
  const Value document = with_one_name(given);
  const ConfigReader config(document, given.where());
  DecoderSpec spec = read_latent_decoder(config, {.vocabulary = 154880,
                                                  .hidden = 2048,
                                                  .intermediate = 10240,
                                                  .layers = 47,
                                                  .heads = 20,
                                                  .max_positions = 202752,
                                                  .epsilon = 1e-5});
  const nn::MlaSpec mla =
      read_mla(config, spec,
               {.q_rank = 768, .plain_dim = 192, .v_dim = 256, .interleaved = config.boolean("rope_interleave", true)});
  set_mla(spec, mla);
  set_corrected_experts(config, spec, {.experts = 64, .top_k = 4, .inner = 1536, .factor = 1.8, .first = 1});
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "glm4_moe_lite",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .extra_layers = true};
}

}  // namespace easydel::models::zoo::glm4_moe_lite
