// The keys of `trainer_type: sparse_distillation`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/fields.h"
#include "easydel/train/distillation_config.h"
#include "easydel/train/rollout_keys_config.h"

namespace easydel::train {

struct SparseKeys {
  int64_t top_k_teacher = 20;

  static std::vector<std::string_view> keys_after_examples() { return names_of<&SparseKeys::top_k_teacher>(); }

  static constexpr auto doc = "What of the teacher is kept.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::top_k_teacher>("Number of the teacher's most likely tokens that are used.", at_least(1)),
    };
  }
};

struct SparseDistillationConfig {
  SparseKeys own;
  DistillationConfig distillation;
  TeachingKeys samples;

  static constexpr MethodFacts facts{
      .rows = {data::RowKind::text, data::RowKind::messages, data::RowKind::prompt_completion},
      .weighs = true,
      .teacher = SideModelUse::required,
      .saves = data::sequence_columns};
  DataKeys data_keys() const { return {.text_field = distillation.dataset_text_field}; }

  void check_sizes(const ModelSizes& model, const ModelSizes* teacher) const {
    distillation.check_sizes(model, teacher);
  }

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<SparseKeys, DistillationConfig, TeachingKeys>();
  }

  static config::Section section() {
    return config::flat<&SparseDistillationConfig::own, &SparseDistillationConfig::distillation,
                        &SparseDistillationConfig::samples>("Distillation of the teacher's most likely tokens.");
  }
};

}  // namespace easydel::train
