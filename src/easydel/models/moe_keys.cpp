#include "easydel/models/moe_keys.h"

#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"

namespace easydel::models {

int64_t integer_of(const ConfigReader& config, std::initializer_list<const char*> keys, int64_t otherwise) {
  for (const char* key : keys)
    if (config.find(key)) {
      const int64_t value = config.integer(key, otherwise);
      config.positive(key, value);
      return value;
    }
  return otherwise;
}

nn::MoeSpec moe_of(const ConfigReader& config, const DecoderSpec& spec, int64_t experts, int64_t top_k, int64_t inner) {
  config.positive("num_experts_per_tok", top_k);
  if (top_k > experts)
    config.refuse_key("num_experts_per_tok", str(top_k, " of ", experts, " experts"),
                      "a token cannot meet more than there are");
  constexpr int64_t max_experts = 1 << 16;  // each allocates names before any weight is read
  if (experts > max_experts)
    refuse(config.where(), str(experts, " experts are more than the ", max_experts, " that are built"));
  nn::MoeSpec moe;
  moe.router.experts = moe.experts.experts = experts;
  moe.router.top_k = top_k;
  moe.experts.size = spec.hidden;
  moe.experts.inner = inner;
  moe.experts.activation = moe.shared_activation = spec.activation;
  moe.experts.deviation = spec.deviation;
  moe.experts.output_deviation = spec.output_deviation;
  return moe;
}

void read_groups(const ConfigReader& config, ops::RouterSpec& router, int64_t groups, int64_t top_groups) {
  router.groups = config.integer("n_group", groups);
  router.top_groups = config.integer("topk_group", top_groups);
  config.positive("n_group", router.groups);
  config.positive("topk_group", router.top_groups);
  if (router.experts % router.groups != 0)
    config.refuse_key("n_group", str(router.groups, " does not divide the ", router.experts, " experts"));
  if (router.top_groups > router.groups)
    config.refuse_key("topk_group", str(router.top_groups, " of n_group, ", router.groups));
}

void read_corrected_router(const ConfigReader& config, nn::MoeSpec& moe, int64_t groups, int64_t top_groups,
                           bool normalise, double factor) {
  ops::RouterSpec& router = moe.router;
  router.scoring = ops::Scoring::sigmoid;
  router.two_for_a_group = true;
  router.normalise = config.boolean("norm_topk_prob", normalise);
  router.norm_plus = 1e-20;
  router.factor = config.number("routed_scaling_factor", factor);
  read_groups(config, router, groups, top_groups);
  moe.exact_router = true;
  moe.router_names.correction = "gate.e_score_correction_bias";
}

RouterLoss read_router_loss(const ConfigReader& config, const ops::RouterSpec& router, double coefficient,
                            const char* key) {
  return {router.top_k, config.number(key, coefficient), config.number("router_z_loss_coef", 0.0),
          config.boolean("output_router_logits", false)};
}

int64_t needed(const ConfigReader& config, const char* key) {
  if (!config.find(key)) config.refuse_key(key, "is missing", "this family has no default for it");
  return integer_of(config, {key}, 0);
}

void set_experts(DecoderSpec& spec, const nn::MoeSpec& moe, const std::vector<bool>& sparse) {
  for (size_t i = 0; i < spec.layers.size(); ++i)
    if (sparse.at(i))
      spec.layers[i].feed = [moe](const nn::Scope& block, int64_t) { return std::make_unique<nn::Moe>(block, moe); };
}

std::vector<bool> all_layers(const DecoderSpec& spec) { return std::vector<bool>(spec.layers.size(), true); }

std::vector<bool> read_expert_steps(const ConfigReader& config, const DecoderSpec& spec) {
  const int64_t step = config.integer("decoder_sparse_step", 1);
  config.positive("decoder_sparse_step", step);
  std::vector<bool> sparse;
  for (size_t i = 0; i < spec.layers.size(); ++i) sparse.push_back((int64_t(i) + 1) % step == 0);
  for (const int64_t layer : config.integers("mlp_only_layers"))
    if (layer >= 0 && layer < int64_t(sparse.size())) sparse[size_t(layer)] = false;
  return sparse;
}

std::vector<bool> read_sparse_layers(const ConfigReader& config, const DecoderSpec& spec, int64_t first) {
  std::vector<bool> sparse;
  const auto types = config.texts("mlp_layer_types");
  const auto layers = int64_t(spec.layers.size());
  if (types.empty()) {
    const int64_t from = config.integer("first_k_dense_replace", first);
    for (int64_t i = 0; i < layers; ++i) sparse.push_back(i >= from);
    return sparse;
  }
  check_one_a_layer(config, "mlp_layer_types", types.size(), size_t(layers));
  for (const std::string& type : types) {
    if (type != "dense" && type != "sparse")
      config.refuse_key("mlp_layer_types", str("'", type, "' is not known"), "known: dense, sparse");
    sparse.push_back(type == "sparse");
  }
  return sparse;
}

void set_corrected_experts(const ConfigReader& config, DecoderSpec& spec, const CorrectedExperts& defaults) {
  nn::MoeSpec moe = moe_of(
      config, spec, integer_of(config, {"n_routed_experts", "num_local_experts", "num_experts"}, defaults.experts),
      config.integer("num_experts_per_tok", defaults.top_k),
      integer_of(config, {"moe_intermediate_size"}, defaults.inner));
  read_corrected_router(config, moe, defaults.groups, defaults.top_groups, true, defaults.factor);
  moe.shared_inner = moe.experts.inner * integer_of(config, {"n_shared_experts"}, 1);
  set_experts(spec, moe, read_sparse_layers(config, spec, defaults.first));
}

}  // namespace easydel::models
