// Kimi Linear (arXiv 2510.26692): its delta rule in most layers, multi-head latent attention without positions in the
// others, experts after the first layers.
#include "easydel/base/error.h"
#include "easydel/models/family.h"
#include "easydel/models/mla_keys.h"
#include "easydel/models/moe_keys.h"
#include "easydel/models/recurrent_keys.h"
#include "easydel/nn/delta.h"

namespace easydel::models::zoo::kimi_linear {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  const int64_t heads = read_size(config, "num_attention_heads", 32);
  DecoderSpec spec = read_latent_decoder(config, {.vocabulary = 163840,
                                                  .hidden = 2304,
                                                  .intermediate = 9216,
                                                  .layers = 27,
                                                  .heads = heads,
                                                  .kv_heads = heads,
                                                  .max_positions = config.integer("model_max_length", 1048576)});
  spec.tied = false;  // transformers ignores tie_word_embeddings for this family
  spec.norm.epsilon = config.number("rms_norm_eps", 1e-5);
  spec.names.mlp = "block_sparse_moe";  // transformers' name, in dense layers, too; published files say mlp there
  nn::MlaSpec mla = read_mla(config, spec, {});
  mla.rope = nullptr;

  // Published files have the delta rule's keys in a mapping of their own.
  const Value none = Value::map();
  const Value* own = config.find("linear_attn_config");
  const ConfigReader linear(own && own->is_map() ? *own : none, config.where().below("linear_attn_config"));
  nn::DeltaSpec delta;
  delta.hidden = spec.hidden;
  delta.k_heads = delta.v_heads = read_size(linear, "num_heads", read_size(config, "linear_num_heads", 32));
  delta.k_dim = delta.v_dim = read_size(linear, "head_dim", read_size(config, "linear_head_dim", 128));
  delta.width = read_size(linear, "short_conv_kernel_size", read_size(config, "linear_conv_kernel_dim", 4));
  delta.activation = spec.activation;
  delta.epsilon = spec.norm.epsilon;
  delta.deviation = spec.deviation;
  delta.output_deviation = spec.output_deviation;

  const size_t layers = spec.layers.size();
  std::vector<std::string> kinds = read_kinds(config, "layer_types", {"linear_attention", "full_attention"}, layers);
  if (kinds.empty()) {
    for (size_t i = 0; i < layers; ++i) kinds.push_back(i > 0 && i % 4 == 0 ? "full_attention" : "linear_attention");
    if (linear.find("full_attn_layers")) {
      kinds.assign(layers, "linear_attention");
      for (const int64_t layer : linear.integers("full_attn_layers")) {  // counted from 1
        if (layer < 1 || layer > int64_t(layers))
          linear.refuse_key("full_attn_layers", str(layer, " is not a layer; there are ", layers));
        kinds[size_t(layer) - 1] = "full_attention";
      }
    }
  }
  set_mla(spec, mla);
  for (size_t i = 0; i < layers; ++i)
    if (kinds[i] == "linear_attention")
      spec.layers[i].mixer = [delta](const nn::Scope& block, int64_t layer) {
        return std::make_unique<nn::KimiDelta>(block / "self_attn", delta, layer);
      };

  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_experts", "num_local_experts"}, 256),
                           integer_of(config, {"num_experts_per_token", "num_experts_per_tok"}, 8),
                           integer_of(config, {"moe_intermediate_size"}, 1024));
  moe.name = "block_sparse_moe";
  ops::RouterSpec& router = moe.router;
  router.scoring = ops::Scoring::sigmoid;
  router.two_for_a_group = true;
  router.normalise = config.boolean("moe_renormalize", config.boolean("norm_topk_prob", true));
  router.norm_plus = 1e-20;
  router.factor = config.number("routed_scaling_factor", 2.446);
  router.groups = integer_of(config, {"num_expert_group", "n_group"}, 1);
  router.top_groups = integer_of(config, {"topk_group"}, 1);
  if (router.groups < 1 || router.experts % router.groups != 0 || router.top_groups > router.groups)
    config.refuse_key("num_expert_group", str(router.groups, " groups do not divide ", router.experts, " experts"));
  moe.exact_router = true;
  moe.router_names.correction = "gate.e_score_correction_bias";
  moe.experts.files = nn::ExpertFiles::numbered();
  moe.shared_inner = moe.experts.inner * integer_of(config, {"num_shared_experts", "n_shared_experts"}, 1);
  set_experts(spec, moe, read_sparse_layers(config, spec, 1));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "kimi_linear",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .spellings = {{".block_sparse_moe.", ".mlp."}}};
}

}  // namespace easydel::models::zoo::kimi_linear
