// The keys of `trainer_type: gfpo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "easydel/config/fields.h"
#include "easydel/train/grpo_config.h"
#include "easydel/train/method_facts.h"

namespace easydel::train {

struct GfpoKeys {
  std::optional<int64_t> num_remains_in_group = {};
  bool filter_by_length = true;
  bool filter_by_efficiency = true;
  double length_weight = 0.5;
  double efficiency_weight = 0.5;

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&GfpoKeys::num_remains_in_group, &GfpoKeys::filter_by_length, &GfpoKeys::filter_by_efficiency,
                    &GfpoKeys::length_weight, &GfpoKeys::efficiency_weight>();
  }

  static constexpr auto doc = "Which completions are kept.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::num_remains_in_group>("Completions of a group that are kept; null: all.", at_least(1)),
        field<&C::filter_by_length>("Keep the shorter ones."),
        field<&C::filter_by_efficiency>("Keep those with the highest reward per token."),
        field<&C::length_weight>("Weight of the length.", at_least(0)),
        field<&C::efficiency_weight>("Weight of the reward per token.", at_least(0)),
    };
  }
};

struct GfpoConfig {
  GfpoKeys own;
  GrpoKeys grpo;
  RolloutKeys rollouts;
  WindowKeys window;
  ReferenceKeys reference;

  static constexpr MethodFacts facts = facts_of_sampling;
  bool has_reference() const { return grpo.beta != 0; }

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<GfpoKeys, GrpoKeys, RolloutKeys, WindowKeys, ReferenceKeys>();
  }

  static config::Section section() {
    return config::flat<&GfpoConfig::own, &GfpoConfig::grpo, &GfpoConfig::rollouts, &GfpoConfig::window,
                        &GfpoConfig::reference>(
        "Group filtered policy optimisation (arXiv:2508.09726): trains only on the best completions of a group.");
  }
};

}  // namespace easydel::train
