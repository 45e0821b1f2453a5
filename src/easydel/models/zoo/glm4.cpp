// GLM-4-0414: GLM with norms before and after each part.
#include "easydel/models/family.h"
#include "easydel/models/glm_keys.h"

namespace easydel::models::zoo::glm4 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_glm(config);
  spec.names.after_mixer = "post_self_attn_layernorm";
  spec.names.after_feed = "post_mlp_layernorm";
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"glm4", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::glm4
