// The keys of `trainer_type: orpo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/fields.h"
#include "easydel/train/pair_keys_config.h"

namespace easydel::train {

struct OrpoKeys {
  double beta = 0.1;
  bool generate_during_eval = false;

  static std::vector<std::string_view> keys_after_examples() { return names_of<&OrpoKeys::beta>(); }

  static constexpr auto doc = "The odds ratio.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("Weight of the odds ratio in addition to the likelihood.", above(0), alias("lambda_orpo")),
        field<&C::generate_during_eval>("Generate completions during evaluation.",
                                        not_built("generating while evaluating")),
    };
  }
};

struct OrpoConfig {
  OrpoKeys own;
  PairKeys pairs;

  static constexpr MethodFacts facts{.rows = {data::RowKind::preference}};

  static std::vector<std::string_view> keys_after_examples() { return keys_after_examples_of<OrpoKeys, PairKeys>(); }

  static config::Section section() {
    return config::flat<&OrpoConfig::own, &OrpoConfig::pairs>(
        "Odds ratio preference optimisation (arXiv:2403.07691): no reference model.");
  }
};

}  // namespace easydel::train
