// The keys of `trainer_type: on_policy_distillation`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/fields.h"
#include "easydel/train/distillation_config.h"
#include "easydel/train/rollout_keys_config.h"

namespace easydel::train {

struct OnPolicyKeys {
  bool generate_with_teacher = false;

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&OnPolicyKeys::generate_with_teacher>();
  }

  static constexpr auto doc = "Who samples.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::generate_with_teacher>("Sample from the teacher instead of the student."),
    };
  }
};

struct OnPolicyDistillationConfig {
  OnPolicyKeys own;
  DistillationConfig distillation;
  TeachingKeys samples;

  static constexpr MethodFacts facts{.rows = {data::RowKind::messages, data::RowKind::prompt_completion},
                                     .samples = true,
                                     .weighs = true,
                                     .teacher = SideModelUse::required};

  void check_sizes(const ModelSizes& model, const ModelSizes* teacher) const {
    distillation.check_sizes(model, teacher);
  }

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<OnPolicyKeys, DistillationConfig, TeachingKeys>();
  }

  static config::Section section() {
    return config::flat<&OnPolicyDistillationConfig::own, &OnPolicyDistillationConfig::distillation,
                        &OnPolicyDistillationConfig::samples>("Distillation on sampled completions.");
  }
};

}  // namespace easydel::train
