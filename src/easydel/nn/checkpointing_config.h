// What of a layer's activations is kept for the backward pass, by the policies and tensor names of the configuration. A
// face: no torch. Keeping and giving back is nn/run_layer.h and nn/pass.h.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::nn {

// All activations, none but a layer's input, or the named ones beside it.
enum class Checkpointing : uint8_t { none, nothing_saveable, save_names };

struct CheckpointPolicy {
  CheckpointPolicy() = default;
  CheckpointPolicy(Checkpointing k) : kind(k) {}

  Checkpointing kind = Checkpointing::none;
  // save_names: only `names`, or every tensor that can be kept but those.
  std::set<std::string, std::less<>> names = {};
  bool all_but_names = false;

  bool recomputes() const { return kind != Checkpointing::none; }
  bool keeps(std::string_view name) const {
    return kind == Checkpointing::save_names && names.contains(name) != all_but_names;
  }
};

// The names that a policy may speak of: those of the documents, and those of our layers. Some mark what is never kept
// beside a layer's input (docs/checkpointing.md says which).
std::span<const std::string_view> checkpoint_names();

// Whether a policy is about gradient_checkpointing_targets; Bug on a word that is no policy.
bool takes_names(std::string_view policy);
// What a policy's word and its targets mean. The policies named after dots keep products, as in JAX: of weights alone,
// or attention's result too. save_from_both_policies keeps the products of weights and the targets.
CheckpointPolicy checkpoint_policy(std::string_view policy, const std::optional<std::vector<std::string>>& targets);

}  // namespace easydel::nn
