#include "easydel/models/qwen3_next_keys.h"

#include "easydel/base/error.h"
#include "easydel/models/moe_keys.h"
#include "easydel/models/recurrent_keys.h"
#include "easydel/nn/delta.h"

namespace easydel::models {

DecoderSpec read_qwen3_next(const ConfigReader& config, DecoderDefaults defaults, bool fused) {
  defaults.rope = {.partial = 0.25, .reads_partial = true};
  DecoderSpec spec = read_decoder(config, defaults);
  spec.norm.offset = 1.0;
  spec.qk_norm = QkNorm::head;
  spec.attention_gate = true;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);

  nn::DeltaSpec delta;
  delta.hidden = spec.hidden;
  delta.k_heads = read_size(config, "linear_num_key_heads", 16);
  delta.v_heads = read_size(config, "linear_num_value_heads", 32);
  if (delta.v_heads % delta.k_heads != 0)
    config.refuse_key("linear_num_value_heads",
                      str(delta.v_heads, " is not a multiple of linear_num_key_heads, ", delta.k_heads));
  delta.k_dim = read_size(config, "linear_key_head_dim", 128);
  delta.v_dim = read_size(config, "linear_value_head_dim", 128);
  delta.width = read_size(config, "linear_conv_kernel_dim", 4);
  delta.activation = spec.activation;
  delta.epsilon = spec.norm.epsilon;
  delta.deviation = spec.deviation;
  delta.output_deviation = spec.output_deviation;
  const auto kinds = read_interval_kinds(config, spec.layers.size());
  for (size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i] == "linear_attention")
      spec.layers[i].mixer = [delta, fused](const nn::Scope& block, int64_t layer) {
        return std::make_unique<nn::GatedDelta>(block / "linear_attn", delta, fused, layer);
      };
  return spec;
}

void set_qwen3_next_experts(const ConfigReader& config, DecoderSpec& spec, int64_t experts, int64_t top_k,
                            bool normalise, const std::vector<bool>& sparse) {
  nn::MoeSpec moe =
      moe_of(config, spec, integer_of(config, {"num_experts"}, experts), config.integer("num_experts_per_tok", top_k),
             integer_of(config, {"moe_intermediate_size"}, 512));
  moe.router.normalise = normalise;
  moe.shared_inner = integer_of(config, {"shared_expert_intermediate_size"}, 512);
  moe.shared = "shared_expert";
  moe.shared_gate = "shared_expert_gate";
  spec.router_loss = read_router_loss(config, moe.router);
  set_experts(spec, moe, sparse);
}

}  // namespace easydel::models
