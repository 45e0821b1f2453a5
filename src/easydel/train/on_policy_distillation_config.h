// The keys of `trainer_type: on_policy_distillation`. A face: no torch.
#pragma once

#include <cstdint>
#include <tuple>

#include "easydel/config/fields.h"
#include "easydel/train/distillation_config.h"
#include "easydel/train/rollout_keys_config.h"

namespace easydel::train {

struct OnPolicyKeys {
  bool generate_with_teacher = false;

  static constexpr auto doc = "Who samples.";
  static constexpr auto fields() {
    using namespace config;
    using C = OnPolicyKeys;
    return std::tuple{
        field<&C::generate_with_teacher>("The teacher samples, not the student."),
    };
  }
};

struct OnPolicyDistillationConfig {
  OnPolicyKeys own;
  DistillationConfig distillation;
  TeachingKeys samples;

  static config::Section section() {
    return config::flat<&OnPolicyDistillationConfig::own, &OnPolicyDistillationConfig::distillation,
                        &OnPolicyDistillationConfig::samples>("Distillation on sampled completions.");
  }
};

}  // namespace easydel::train
