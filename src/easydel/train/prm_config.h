// The keys of `trainer_type: prm`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"

namespace easydel::train {

struct PrmConfig {
  std::string step_separator = "\n";
  bool train_on_last_step_only = false;
  std::optional<int64_t> max_prompt_length = 512;
  std::optional<int64_t> max_completion_length = {};
  bool disable_dropout = true;
  std::optional<int64_t> dataset_num_proc = {};

  static constexpr MethodFacts facts{
      .task = models::Task::token_classification, .labels = 2, .rows = {data::RowKind::stepwise}};

  static std::vector<std::string_view> keys_after_examples() { return names_of<&PrmConfig::disable_dropout>(); }

  static constexpr auto doc =
      "Trains a process reward model (arXiv:2211.14275), which scores each step of an answer, from labelled steps.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::step_separator>("Text that ends each step. Its last token has the step's label."),
        field<&C::train_on_last_step_only>("Train only on the label of the last step. Evaluation uses all labels."),
        field<&C::max_prompt_length>("Longest prompt in tokens; its end is kept.", at_least(1)),
        field<&C::max_completion_length>("Longest completion in tokens, all steps together; its beginning is kept.",
                                         at_least(1)),
        field<&C::disable_dropout>("Train without dropout."),
        field<&C::dataset_num_proc>("Processes that tokenize.",
                                    no_effect("rows are tokenized once, before the first step")),
    };
  }
};

}  // namespace easydel::train
