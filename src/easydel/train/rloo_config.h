// The keys of `trainer_type: rloo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"
#include "easydel/train/rollout_keys_config.h"

namespace easydel::train {

struct RlooKeys {
  double beta = 0.05;
  double epsilon = 0.2;
  std::optional<double> epsilon_high = {};
  Importance importance = Importance::full;
  bool normalize_advantages = false;
  std::optional<std::vector<double>> reward_clip_range = {};

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&RlooKeys::beta, &RlooKeys::epsilon, &RlooKeys::epsilon_high, &RlooKeys::importance,
                    &RlooKeys::normalize_advantages, &RlooKeys::reward_clip_range>();
  }

  static constexpr auto doc = "Completions compared with the others of their group.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("Weight of the divergence from the reference, which is subtracted from a completion's reward.",
                        at_least(0), alias("kl_coef")),
        field<&C::epsilon>("Lower clip range of a completion's probability ratio.", at_least(0)),
        field<&C::epsilon_high>("Upper clip range of the probability ratio; null: as epsilon.", at_least(0)),
        field<&C::importance>(importance_help),
        field<&C::normalize_advantages>("Scale the advantages of a generation to mean 0 and deviation 1."),
        field<&C::reward_clip_range>("Lowest and highest reward, [low, high]; null: rewards are not clipped."),
    };
  }
  void settle(config::Keys& keys);
};

struct RlooConfig {
  RlooKeys own;
  RolloutKeys rollouts;
  WindowKeys window;
  ReferenceKeys reference;

  static constexpr MethodFacts facts = facts_of_sampling;
  bool has_reference() const { return own.beta != 0; }

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<RlooKeys, RolloutKeys, WindowKeys, ReferenceKeys>();
  }

  static config::Section section() {
    return config::flat<&RlooConfig::own, &RlooConfig::rollouts, &RlooConfig::window, &RlooConfig::reference>(
        "REINFORCE with leave-one-out baselines (arXiv:2402.14740).");
  }
};

}  // namespace easydel::train
