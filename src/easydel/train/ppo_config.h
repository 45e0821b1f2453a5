// The keys of `trainer_type: ppo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"
#include "easydel/train/rollout_keys_config.h"

namespace easydel::train {

enum class KlEstimator : uint8_t { k1, k3 };
constexpr auto choices(KlEstimator) {
  using enum KlEstimator;
  return std::array{config::Choice{k1, "k1"}, config::Choice{k3, "k3"}};
}

struct PpoKeys {
  int64_t num_ppo_epochs = 1;
  double kl_coef = 0.05;
  KlEstimator kl_estimator = KlEstimator::k1;
  double cliprange = 0.2;
  double vf_coef = 0.1;
  double cliprange_value = 0.2;
  double gamma = 1;
  double lam = 0.95;
  Importance importance = Importance::full;
  bool whiten_rewards = false;
  bool whiten_advantages = true;
  std::optional<double> entropy_coef = {};
  std::optional<double> missing_eos_penalty = {};

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&PpoKeys::num_ppo_epochs, &PpoKeys::kl_coef, &PpoKeys::kl_estimator, &PpoKeys::cliprange,
                    &PpoKeys::vf_coef, &PpoKeys::cliprange_value, &PpoKeys::gamma, &PpoKeys::lam, &PpoKeys::importance,
                    &PpoKeys::whiten_rewards, &PpoKeys::whiten_advantages, &PpoKeys::entropy_coef,
                    &PpoKeys::missing_eos_penalty>();
  }

  static constexpr auto doc = "The clipped update and the value function.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::num_ppo_epochs>("Updates from one set of completions.", at_least(1)),
        field<&C::kl_coef>("Weight of the divergence from the reference.", at_least(0)),
        field<&C::kl_estimator>("Estimator of the KL divergence."),
        field<&C::cliprange>("Clip range of the probability ratio.", at_least(0)),
        field<&C::vf_coef>("Weight of the value function.", at_least(0)),
        field<&C::cliprange_value>("Clip range of values.", at_least(0)),
        field<&C::gamma>("Discount.", between(0, 1)),
        field<&C::lam>("Lambda of the advantage estimate.", between(0, 1)),
        field<&C::importance>(importance_help),
        field<&C::whiten_rewards>("Scale rewards to mean 0 and deviation 1."),
        field<&C::whiten_advantages>("Scale advantages to mean 0 and deviation 1."),
        field<&C::entropy_coef>("Weight of the entropy; null: none."),
        field<&C::missing_eos_penalty>("Subtracted from the reward of a completion without EOS; null: nothing."),
    };
  }
};

struct PpoConfig {
  PpoKeys own;
  RolloutKeys rollouts = {.num_return_sequences = 1};

  static constexpr MethodFacts facts = facts_of_sampling;

  static std::vector<std::string_view> keys_after_examples() { return keys_after_examples_of<PpoKeys, RolloutKeys>(); }

  static config::Section section() {
    return config::flat<&PpoConfig::own, &PpoConfig::rollouts>("Proximal policy optimisation (arXiv:1707.06347).");
  }
};

}  // namespace easydel::train
