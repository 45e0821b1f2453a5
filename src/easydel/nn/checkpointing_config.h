// Which activations of a layer are kept for its backward, by the policies and tensor names of the configuration. A
// face: no torch. nn/run_layer.h and nn/activations.h do the keeping.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/config/choice.h"

namespace easydel::nn {

// All activations, a layer's input alone, or the input and named activations.
enum class Checkpointing : uint8_t { none, nothing_saveable, save_names };

struct CheckpointPolicy {
  CheckpointPolicy() = default;
  CheckpointPolicy(Checkpointing k) : kind(k) {}

  Checkpointing kind = Checkpointing::none;
  // save_names: only `names`, or every tensor that can be kept except those.
  std::set<std::string, std::less<>> names = {};
  bool all_but_names = false;

  bool recomputes() const { return kind != Checkpointing::none; }
  bool keeps(std::string_view name) const {
    return kind == Checkpointing::save_names && names.contains(name) != all_but_names;
  }
};

// The names that a policy may use: EasyDeL's, and those of our layers. Tensors of some names are never kept
// (docs/checkpointing.md says which).
std::span<const std::string_view> checkpoint_names();

// The policies by their words in the configuration.
enum class GradientCheckpointing : uint8_t {
  none,
  nothing_saveable,
  everything_saveable,
  checkpoint_dots,
  checkpoint_dots_with_no_batch_dims,
  dots_saveable,
  dots_with_no_batch_dims_saveable,
  save_anything_except_these_names,
  save_any_names_but_these,
  save_only_these_names,
  save_from_both_policies,
  mlp_notsaveable,
  attn_notsaveable,
  mlp_attn_notsaveable
};
constexpr auto choices(GradientCheckpointing) {
  using enum GradientCheckpointing;
  using config::Choice;
  return std::array{Choice{none, "none"}.also(""),
                    Choice{nothing_saveable, "nothing_saveable"},
                    Choice{everything_saveable, "everything_saveable"},
                    Choice{checkpoint_dots, "checkpoint_dots"},
                    Choice{checkpoint_dots_with_no_batch_dims, "checkpoint_dots_with_no_batch_dims"},
                    Choice{dots_saveable, "dots_saveable"},
                    Choice{dots_with_no_batch_dims_saveable, "dots_with_no_batch_dims_saveable"},
                    Choice{save_anything_except_these_names, "save_anything_except_these_names"},
                    Choice{save_any_names_but_these, "save_any_names_but_these"},
                    Choice{save_only_these_names, "save_only_these_names"},
                    Choice{save_from_both_policies, "save_from_both_policies"},
                    Choice{mlp_notsaveable, "mlp_notsaveable"},
                    Choice{attn_notsaveable, "attn_notsaveable"},
                    Choice{mlp_attn_notsaveable, "mlp_attn_notsaveable"}};
}

// Whether a policy reads gradient_checkpointing_targets.
bool takes_names(GradientCheckpointing policy);
// What a policy and its targets mean. The policies named after dots keep products, as in JAX: those with weights, or
// those and the result of attention. save_from_both_policies keeps the products with weights and the targets.
CheckpointPolicy checkpoint_policy(GradientCheckpointing policy,
                                   const std::optional<std::vector<std::string>>& targets);

}  // namespace easydel::nn
