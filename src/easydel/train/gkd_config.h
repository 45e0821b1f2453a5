// The keys of `trainer_type: gkd`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/fields.h"
#include "easydel/train/sft_config.h"

namespace easydel::train {

struct GkdKeys {
  double temperature = 0.9;
  double lmbda = 0.5;
  double beta = 0.5;
  int64_t max_new_tokens = 128;
  bool disable_dropout = true;
  bool seq_kd = false;

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&GkdKeys::temperature, &GkdKeys::beta, &GkdKeys::max_new_tokens, &GkdKeys::disable_dropout>();
  }

  static constexpr auto doc = "The divergence, and whose texts.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::temperature>("Temperature of the sampled completions; the divergence is computed at 1, as in TRL.",
                               above(0)),
        field<&C::lmbda>("Fraction of batches with completions sampled from the student.", between(0, 1)),
        field<&C::beta>("Interpolates between KL(teacher || student) at 0 and KL(student || teacher) at 1.",
                        between(0, 1)),
        field<&C::max_new_tokens>("Tokens of a sampled completion.", at_least(1)),
        field<&C::disable_dropout>("Train without dropout."),
        field<&C::seq_kd>("Train on texts that the teacher generates."),
    };
  }
};

struct GkdConfig {
  GkdKeys own;
  SftConfig sft;

  static constexpr MethodFacts facts{
      .rows = {data::RowKind::text, data::RowKind::messages, data::RowKind::prompt_completion},
      .samples = true,
      .weighs = true,
      .teacher = SideModelUse::required,
      .saves = data::sequence_columns};
  DataKeys data_keys() const { return {.text_field = sft.dataset_text_field}; }

  static std::vector<std::string_view> keys_after_examples() { return keys_after_examples_of<GkdKeys, SftConfig>(); }

  static config::Section section() {
    return config::flat<&GkdConfig::own, &GkdConfig::sft>("Generalised knowledge distillation (arXiv:2306.13649).");
  }
};

}  // namespace easydel::train
