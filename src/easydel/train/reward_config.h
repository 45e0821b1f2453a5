// The keys of `trainer_type: reward`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"

namespace easydel::train {

struct RewardConfig {
  bool disable_dropout = true;
  std::optional<double> center_rewards_coefficient = 0.1;
  std::optional<int64_t> dataset_num_proc = {};

  static constexpr MethodFacts facts{.task = models::Task::sequence_classification,
                                     .labels = 1,
                                     .rows = {data::RowKind::preference},
                                     .saves = data::whole_pair_columns};

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&RewardConfig::disable_dropout, &RewardConfig::center_rewards_coefficient>();
  }

  static constexpr auto doc = "Trains a reward model, which scores answers, from pairs.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::disable_dropout>("Train without dropout."),
        field<&C::center_rewards_coefficient>("Weight of the squared mean reward; null: off.", at_least(0)),
        field<&C::dataset_num_proc>("Processes that tokenize.",
                                    no_effect("rows are tokenized once, before the first step")),
    };
  }
};

}  // namespace easydel::train
