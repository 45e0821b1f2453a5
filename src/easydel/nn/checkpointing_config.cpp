#include "easydel/nn/checkpointing_config.h"

#include <array>

#include "easydel/base/error.h"

namespace easydel::nn {
namespace {

// The result of attention before its output projection: the only tensor of a product without weights.
constexpr std::string_view attention_result = "attn_dense";

using Names = std::set<std::string, std::less<>>;

CheckpointPolicy only(Names names) {
  CheckpointPolicy out(Checkpointing::save_names);
  out.names = std::move(names);
  return out;
}

CheckpointPolicy all_but(Names names) {
  CheckpointPolicy out = only(std::move(names));
  out.all_but_names = true;
  return out;
}

CheckpointPolicy all_but_prefixes(std::initializer_list<std::string_view> prefixes) {
  Names names;
  for (const std::string_view name : checkpoint_names())
    for (const std::string_view prefix : prefixes)
      if (name.starts_with(prefix)) names.emplace(name);
  return all_but(std::move(names));
}

struct Policy {
  GradientCheckpointing policy;
  bool takes_names;
  CheckpointPolicy (*make)(const Names& targets);
};

CheckpointPolicy all_products(const Names&) { return all_but({}); }
CheckpointPolicy products_of_weights(const Names&) { return all_but({std::string(attention_result)}); }

constexpr std::array policies = {
    Policy{GradientCheckpointing::none, false, [](const Names&) { return CheckpointPolicy(); }},
    Policy{GradientCheckpointing::everything_saveable, false, [](const Names&) { return CheckpointPolicy(); }},
    Policy{GradientCheckpointing::nothing_saveable, false,
           [](const Names&) { return CheckpointPolicy(Checkpointing::nothing_saveable); }},
    Policy{GradientCheckpointing::checkpoint_dots, false, all_products},
    Policy{GradientCheckpointing::dots_saveable, false, all_products},
    Policy{GradientCheckpointing::checkpoint_dots_with_no_batch_dims, false, products_of_weights},
    Policy{GradientCheckpointing::dots_with_no_batch_dims_saveable, false, products_of_weights},
    Policy{GradientCheckpointing::save_anything_except_these_names, true,
           [](const Names& targets) { return all_but(targets); }},
    Policy{GradientCheckpointing::save_any_names_but_these, true,
           [](const Names& targets) { return all_but(targets); }},
    Policy{GradientCheckpointing::save_only_these_names, true, [](const Names& targets) { return only(targets); }},
    Policy{GradientCheckpointing::save_from_both_policies, true,
           [](const Names& targets) {
             return targets.contains(attention_result) ? all_products(targets) : products_of_weights(targets);
           }},
    Policy{GradientCheckpointing::mlp_notsaveable, false, [](const Names&) { return all_but_prefixes({"mlp_"}); }},
    Policy{GradientCheckpointing::attn_notsaveable, false, [](const Names&) { return all_but_prefixes({"attn_"}); }},
    Policy{GradientCheckpointing::mlp_attn_notsaveable, false,
           [](const Names&) {
             return all_but_prefixes({"mlp_", "attn_"});
           }},
};

const Policy& entry_of(GradientCheckpointing policy) {
  for (const Policy& entry : policies)
    if (entry.policy == policy) return entry;
  throw Bug(str("no checkpoint policy ", int(policy)));
}

}  // namespace

std::span<const std::string_view> checkpoint_names() {
  static constexpr std::array<std::string_view, 62> names = {
      // Of EasyDeL's documents.
      "attn_dense", "attn_key", "attn_key_value", "attn_output", "attn_qkv", "attn_query", "attn_receptance",
      "attn_value", "attn_weights", "embeddings", "layer_output", "lm_head_output", "mlp_down", "mlp_gate",
      "mlp_output", "mlp_up", "model_output", "moe_expert_output", "moe_gate_logits", "moe_output", "moe_router_logits",
      "normed_input", "residual",
      // Of later versions of EasyDeL.
      "attn_gate", "attn_query_a", "mlp_gate_up", "moe_gate", "moe_up", "residual_attn", "residual_mlp",
      // Of our layers.
      "addition", "addition_in", "altup_correct", "altup_merge", "altup_predict", "altup_router", "altup_split",
      "index_key", "index_query", "index_weights", "laurel_left", "laurel_right", "mixer_beta", "mixer_decay",
      "mixer_forget", "mixer_forget_in", "mixer_gate", "mixer_gate_in", "mixer_in", "mixer_key", "mixer_output",
      "mixer_parts", "mixer_query", "mixer_value", "moe_latent", "moe_shared_gate", "per_layer_gate",
      "per_layer_output", "per_layer_projection", "project_in", "project_out", "shared_output"};
  return names;
}

bool takes_names(GradientCheckpointing policy) { return entry_of(policy).takes_names; }

CheckpointPolicy checkpoint_policy(GradientCheckpointing policy,
                                   const std::optional<std::vector<std::string>>& targets) {
  Names names;
  if (targets) names.insert(targets->begin(), targets->end());
  return entry_of(policy).make(names);
}

}  // namespace easydel::nn
