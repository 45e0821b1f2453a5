// The keys of `trainer_type: sdpo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/fields.h"
#include "easydel/train/rollout_keys_config.h"

namespace easydel::train {

enum class SelfDistillation : uint8_t { kl, jsd };
constexpr auto choices(SelfDistillation) {
  using enum SelfDistillation;
  return std::array{config::Choice{kl, "kl"}, config::Choice{jsd, "jsd"}};
}

struct SdpoKeys {
  int64_t max_feedback_length = 256;
  SelfDistillation distillation_type = SelfDistillation::jsd;
  double beta = 0;

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&SdpoKeys::max_feedback_length, &SdpoKeys::distillation_type, &SdpoKeys::beta>();
  }

  static constexpr auto doc = "What is learned from feedback.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::max_feedback_length>(
            "Tokens of the feedback between prompt and completion, of which the first ones are kept.", at_least(1)),
        field<&C::distillation_type>(
            "Whether the model learns from itself with feedback (kl), or from the mean of both distributions (jsd)."),
        field<&C::beta>("Weight of the divergence from the reference.", at_least(0), alias("kl_coef")),
    };
  }
};

struct SdpoConfig {
  SdpoKeys own;
  RolloutKeys rollouts;
  WindowKeys window;
  ReferenceKeys reference;

  static constexpr MethodFacts facts = facts_of_sampling;
  bool has_reference() const { return own.beta != 0; }

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<SdpoKeys, RolloutKeys, WindowKeys, ReferenceKeys>();
  }

  static config::Section section() {
    return config::flat<&SdpoConfig::own, &SdpoConfig::rollouts, &SdpoConfig::window, &SdpoConfig::reference>(
        "Self-distillation policy optimisation (arXiv:2601.20802): the model learns to answer as it does itself when "
        "it "
        "sees, between the prompt and its own completion, whether that was right and a better completion of the "
        "group.");
  }
};

}  // namespace easydel::train
