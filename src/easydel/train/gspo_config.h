// The keys of `trainer_type: gspo`. A face: no torch.
#pragma once

#include <cstdint>

#include "easydel/config/fields.h"
#include "easydel/train/grpo_config.h"
#include "easydel/train/method_facts.h"

namespace easydel::train {

struct GspoConfig {
  GrpoKeys grpo = {.beta = 0,
                   .epsilon = 3e-4,
                   .epsilon_high = 4e-4,
                   .loss_type = GrpoLoss::grpo,
                   .importance_sampling_level = ImportanceLevel::sequence};
  RolloutKeys rollouts;
  WindowKeys window;
  ReferenceKeys reference;

  static constexpr MethodFacts facts = facts_of_sampling;
  bool has_reference() const { return grpo.beta != 0; }

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<GrpoKeys, RolloutKeys, WindowKeys, ReferenceKeys>();
  }

  static config::Section section() {
    return config::flat<&GspoConfig::grpo, &GspoConfig::rollouts, &GspoConfig::window, &GspoConfig::reference>(
        "Group sequence policy optimisation (arXiv:2507.18071): probability ratios of whole completions.");
  }
};

}  // namespace easydel::train
