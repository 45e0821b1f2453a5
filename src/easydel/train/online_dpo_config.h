// The keys of `trainer_type: online_dpo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"
#include "easydel/train/rollout_keys_config.h"

namespace easydel::train {

enum class OnlineLoss : uint8_t { sigmoid, ipo };
constexpr auto choices(OnlineLoss) {
  using enum OnlineLoss;
  return std::array{config::Choice{sigmoid, "sigmoid"}, config::Choice{ipo, "ipo"}};
}

struct OnlineDpoKeys {
  config::Many<double> beta = {0.1};
  OnlineLoss loss_type = OnlineLoss::sigmoid;
  std::optional<double> missing_eos_penalty = {};
  bool disable_dropout = true;

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&OnlineDpoKeys::beta, &OnlineDpoKeys::loss_type, &OnlineDpoKeys::missing_eos_penalty,
                    &OnlineDpoKeys::disable_dropout>();
  }

  static constexpr auto doc = "What is learned from a pair.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("How strongly the model is kept near the reference; a list: one value per epoch.", above(0)),
        field<&C::loss_type>("Loss as a function of the margin."),
        field<&C::missing_eos_penalty>("Subtracted from the reward of a completion without EOS; null: nothing."),
        field<&C::disable_dropout>("Train without dropout."),
    };
  }
};

struct OnlineDpoConfig {
  OnlineDpoKeys own;
  RolloutKeys rollouts = {
      .max_completion_length = 64, .num_return_sequences = 2, .temperature = 0.9, .top_p = 1, .top_k = {}};
  ReferenceKeys reference;

  static constexpr MethodFacts facts = facts_of_sampling;

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<OnlineDpoKeys, RolloutKeys, ReferenceKeys>();
  }

  static config::Section section() {
    return config::flat<&OnlineDpoConfig::own, &OnlineDpoConfig::rollouts, &OnlineDpoConfig::reference>(
        "Online direct preference optimisation (arXiv:2402.04792): two completions of each prompt are a pair, of which "
        "the one with the higher reward is chosen.");
  }
};

}  // namespace easydel::train
