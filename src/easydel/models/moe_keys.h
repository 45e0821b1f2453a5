// The keys of config.json that families of experts share.
#pragma once

#include <initializer_list>

#include "easydel/models/config_reader.h"
#include "easydel/models/decoder.h"
#include "easydel/nn/moe.h"

namespace easydel::models {

// The first of `keys` that is there: transformers knows some keys by two names.
int64_t integer_of(const ConfigReader& config, std::initializer_list<const char*> keys, int64_t otherwise);

// A layer of experts with the sizes, deviations and activation of `spec`: gated, softmax, nothing beside the experts.
// UserError where `top_k` is more than there are experts.
nn::MoeSpec moe_of(const ConfigReader& config, const DecoderSpec& spec, int64_t experts, int64_t top_k, int64_t inner);

// n_group and topk_group: groups of experts that are chosen first. UserError where they do not divide.
void read_groups(const ConfigReader& config, ops::RouterSpec& router, int64_t groups, int64_t top_groups);

// The router of deepseek_v3 and those after it: sigmoid scores in fp32, a correction of the choice, groups by their best
// two, weights normalised and multiplied by routed_scaling_factor.
void read_corrected_router(const ConfigReader& config, nn::MoeSpec& moe, int64_t groups, int64_t top_groups,
                           bool normalise, double factor);

// Layers with such a feed; the others keep the mlp. `sparse` answers for a layer.
void set_experts(DecoderSpec& spec, const nn::MoeSpec& moe, const std::function<bool(int64_t layer)>& sparse);

// The qwen families' rule: every decoder_sparse_step-th layer but those of mlp_only_layers. Valid as long as the config.
std::function<bool(int64_t layer)> read_expert_steps(const ConfigReader& config);

// Which layers have experts: mlp_layer_types ("dense", "sparse"), else all from `first_k_dense_replace` on.
std::vector<bool> read_sparse_layers(const ConfigReader& config, int64_t layers, int64_t first_dense);

}  // namespace easydel::models
