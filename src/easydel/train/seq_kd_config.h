// The keys of `trainer_type: seq_kd`. A face: no torch.
#pragma once

#include <cstdint>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"
#include "easydel/train/rollout_keys_config.h"

namespace easydel::train {

struct SeqKdConfig {
  TeachingKeys samples;

  static constexpr MethodFacts facts{.rows = {data::RowKind::messages, data::RowKind::prompt_completion},
                                     .samples = true,
                                     .weighs = true,
                                     .teacher = SideModelUse::required};

  static std::vector<std::string_view> keys_after_examples() { return keys_after_examples_of<TeachingKeys>(); }

  static config::Section section() {
    return config::flat<&SeqKdConfig::samples>(
        "Sequence-level distillation: trains on texts that a teacher generates (arXiv:1606.07947).");
  }
};

}  // namespace easydel::train
