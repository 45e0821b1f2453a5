// Which activations of a layer are kept for its backward, by the policies and tensor names of the configuration. A
// face: no torch. nn/run_layer.h and nn/activations.h do the keeping.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// Whether a policy reads gradient_checkpointing_targets; Bug on a word that is not a policy.
bool takes_names(std::string_view policy);
// The policy of a word and its targets. The policies named after dots keep products, as in JAX: those with weights, or
// those and the result of attention. save_from_both_policies keeps the products with weights and the targets.
CheckpointPolicy checkpoint_policy(std::string_view policy, const std::optional<std::vector<std::string>>& targets);

}  // namespace easydel::nn
