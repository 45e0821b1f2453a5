// The keys of `trainer_type: sdpo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/fields.h"
#include "easydel/train/grpo_config.h"

namespace easydel::train {

enum class SelfDistillation : uint8_t { kl, jsd };
constexpr auto choices(SelfDistillation) {
  using enum SelfDistillation;
  return std::array{config::Choice{kl, "kl"}, config::Choice{jsd, "jsd"}};
}

struct SdpoKeys {
  int64_t max_feedback_length = 256;
  SelfDistillation distillation_type = SelfDistillation::jsd;

  static constexpr auto doc = "The feedback.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::max_feedback_length>("Tokens of the feedback.", at_least(1)),
        field<&C::distillation_type>("Divergence from the answer with feedback."),
    };
  }
};

struct SdpoConfig {
  SdpoKeys own;
  GrpoKeys grpo = {.beta = 0};
  RolloutKeys rollouts;
  WindowKeys window;
  ReferenceKeys reference;

  static config::Section section() {
    return config::flat<&SdpoConfig::own, &SdpoConfig::grpo, &SdpoConfig::rollouts, &SdpoConfig::window,
                        &SdpoConfig::reference>("Self-distillation from the model's own answers to feedback.");
  }
};

}  // namespace easydel::train
