// The keys of config.json that families with experts share.
#pragma once

#include <initializer_list>

#include "easydel/models/config_reader.h"
#include "easydel/models/decoder.h"
#include "easydel/nn/moe.h"

namespace easydel::models {

// The first of `keys` that is present, because transformers has two names for some keys.
int64_t integer_of(const ConfigReader& config, std::initializer_list<const char*> keys, int64_t otherwise);

// A layer of gated experts with a softmax router and the sizes, deviations and activation of `spec`; no shared experts.
// UserError if `top_k` is larger than the number of experts.
nn::MoeSpec moe_of(const ConfigReader& config, const DecoderSpec& spec, int64_t experts, int64_t top_k, int64_t inner);

// n_group and topk_group: experts are chosen within groups that are chosen first. UserError if n_group does not divide
// the number of experts.
void read_groups(const ConfigReader& config, ops::RouterSpec& router, int64_t groups, int64_t top_groups);

// The router of deepseek_v3 and later families: sigmoid scores in fp32, a correction bias that affects only the choice,
// groups ranked by their best two, weights normalized and multiplied by routed_scaling_factor.
void read_corrected_router(const ConfigReader& config, nn::MoeSpec& moe, int64_t groups, int64_t top_groups,
                           bool normalise, double factor);

// output_router_logits, router_z_loss_coef and the load balancing loss's coefficient under `key`, `coefficient` if
// that is absent.
RouterLoss read_router_loss(const ConfigReader& config, const ops::RouterSpec& router, double coefficient = 0.001,
                            const char* key = "router_aux_loss_coef");

// Defaults of deepseek_v3's experts and those of later families.
struct CorrectedExperts {
  int64_t experts = 256, top_k = 8, inner = 2048, groups = 1, top_groups = 1;
  double factor = 2.5;
  int64_t first = 3;  // the first layer that has them
};
// Experts with read_corrected_router's router and shared experts, in the layers of read_sparse_layers.
void set_corrected_experts(const ConfigReader& config, DecoderSpec& spec, const CorrectedExperts& defaults);

// A key without a default. UserError if it is missing.
int64_t needed(const ConfigReader& config, const char* key);

// Sets this feed in the marked layers; the others keep theirs.
void set_experts(DecoderSpec& spec, const nn::MoeSpec& moe, const std::vector<bool>& sparse);
std::vector<bool> all_layers(const DecoderSpec& spec);
// The qwen families' rule: every decoder_sparse_step-th layer but those of mlp_only_layers.
std::vector<bool> read_expert_steps(const ConfigReader& config, const DecoderSpec& spec);
// By mlp_layer_types ("dense", "sparse"), else all layers from first_k_dense_replace on (`first` if that is absent).
std::vector<bool> read_sparse_layers(const ConfigReader& config, const DecoderSpec& spec, int64_t first);

}  // namespace easydel::models
