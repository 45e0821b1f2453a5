// The keys of `trainer_type: xpo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "easydel/config/fields.h"
#include "easydel/train/online_dpo_config.h"

namespace easydel::train {

struct XpoKeys {
  config::Many<double> beta = {0.1};
  config::Many<double> alpha = {1e-5};
  OnlineLoss loss_type = OnlineLoss::sigmoid;
  std::optional<double> missing_eos_penalty = {};
  bool disable_dropout = true;

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&XpoKeys::beta, &XpoKeys::alpha, &XpoKeys::loss_type, &XpoKeys::missing_eos_penalty,
                    &XpoKeys::disable_dropout>();
  }

  static constexpr auto doc = "The exploration.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("How strongly the model is kept near the reference; a list: one value per epoch.", above(0)),
        field<&C::alpha>("Weight of exploration; a list: one value per epoch.", at_least(0)),
        field<&C::loss_type>("Loss as a function of the margin."),
        field<&C::missing_eos_penalty>("Subtracted from the reward of a completion without EOS; null: nothing."),
        field<&C::disable_dropout>("Train without dropout."),
    };
  }
};

struct XpoConfig {
  XpoKeys own;
  RolloutKeys rollouts = {.num_return_sequences = 2};
  ReferenceKeys reference;

  static constexpr MethodFacts facts = facts_of_sampling;

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<XpoKeys, RolloutKeys, ReferenceKeys>();
  }

  static config::Section section() {
    return config::flat<&XpoConfig::own, &XpoConfig::rollouts, &XpoConfig::reference>(
        "Exploratory preference optimisation (arXiv:2405.21046).");
  }
};

}  // namespace easydel::train
