// Jamba (arXiv 2403.19887): Mamba with attention in every few layers and experts in every other; no positions.
#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"
#include "easydel/models/recurrent_keys.h"

namespace easydel::models::zoo::jamba {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 65536,
                                           .hidden = 4096,
                                           .intermediate = 14336,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 8,
                                           .max_positions = 262144,
                                           .rope = {.none = true},
                                           .padding = 0});
  spec.names.norm = "final_layernorm";
  spec.names.before_feed = "pre_ff_layernorm";
  spec.names.mlp = "feed_forward";

  nn::MambaSpec mamba;
  mamba.hidden = spec.hidden;
  mamba.inner = read_size(config, "mamba_expand", 2) * spec.hidden;
  mamba.state = read_size(config, "mamba_d_state", 16);
  mamba.rank = read_step_rank(config, "mamba_dt_rank", spec.hidden);
  mamba.width = read_size(config, "mamba_d_conv", 4);
  mamba.bias = config.boolean("mamba_proj_bias", false);
  mamba.convolution_bias = config.boolean("mamba_conv_bias", true);
  mamba.activation = spec.activation;
  mamba.norms = nn::MambaSpec::Norms::learned;
  mamba.epsilon = spec.norm.epsilon;
  mamba.deviation = spec.deviation;

  const auto every = [&](const char* period_key, int64_t period_default, const char* offset_key,
                         int64_t offset_default) {
    const int64_t period = read_size(config, period_key, period_default),
                  offset = config.integer(offset_key, offset_default);
    if (offset < 0 || offset >= period)
      config.refuse_key(offset_key, str(offset, " is not below ", period_key, ", ", period));
    std::vector<bool> out;
    for (size_t i = 0; i < spec.layers.size(); ++i) out.push_back(int64_t(i) % period == offset);
    return out;
  };
  const std::vector<bool> attends = every("attn_layer_period", 8, "attn_layer_offset", 4);
  std::vector<bool> sparse = every("expert_layer_period", 2, "expert_layer_offset", 1);
  for (size_t i = 0; i < spec.layers.size(); ++i)
    if (!attends[i]) spec.layers[i].mixer = mixer_builder<nn::Mamba>("mamba", mamba);

  const int64_t experts = integer_of(config, {"num_experts", "num_local_experts"}, 16);
  if (experts == 1) sparse.assign(sparse.size(), false);
  nn::MoeSpec moe =
      moe_of(config, spec, experts, std::min(experts, config.integer("num_experts_per_tok", 2)), spec.intermediate);
  moe.name = "feed_forward";
  moe.router_names.weight = "router.weight";
  spec.router_loss = read_router_loss(config, moe.router);
  set_experts(spec, moe, sparse);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"jamba", "model", {}, build, false}; }

}  // namespace easydel::models::zoo::jamba
