// The keys of `trainer_type: nash_md`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"
#include "easydel/train/rollout_keys_config.h"

namespace easydel::train {

struct NashMdKeys {
  config::Many<double> beta = {0.1};
  config::Many<double> mixture_coef = {0.5};
  std::optional<double> missing_eos_penalty = {};
  bool disable_dropout = true;

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&NashMdKeys::beta, &NashMdKeys::mixture_coef, &NashMdKeys::missing_eos_penalty,
                    &NashMdKeys::disable_dropout>();
  }

  static constexpr auto doc = "The opponent.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("How strongly the model is kept near the reference; a list: one value per epoch.", above(0)),
        field<&C::mixture_coef>("Weight of the reference in the opponent; a list: one value per epoch.", between(0, 1)),
        field<&C::missing_eos_penalty>("Subtracted from the reward of a completion without EOS; null: nothing."),
        field<&C::disable_dropout>("Train without dropout."),
    };
  }
};

struct NashMdConfig {
  NashMdKeys own;
  RolloutKeys rollouts = {.num_return_sequences = 2};
  ReferenceKeys reference;

  static constexpr MethodFacts facts = facts_of_sampling;

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<NashMdKeys, RolloutKeys, ReferenceKeys>();
  }

  static config::Section section() {
    return config::flat<&NashMdConfig::own, &NashMdConfig::rollouts, &NashMdConfig::reference>(
        "Nash learning from human feedback (arXiv:2312.00886).");
  }
};

}  // namespace easydel::train
