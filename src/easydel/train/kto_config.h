// The keys of `trainer_type: kto`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/fields.h"
#include "easydel/train/pair_keys_config.h"

namespace easydel::train {

enum class KtoLoss : uint8_t { kto, apo_zero_unpaired };
constexpr auto choices(KtoLoss) {
  using enum KtoLoss;
  return std::array{config::Choice{kto, "kto"}, config::Choice{apo_zero_unpaired, "apo_zero_unpaired"}};
}

struct KtoKeys {
  double beta = 0.1;
  double desirable_weight = 1;
  double undesirable_weight = 1;
  KtoLoss loss_type = KtoLoss::kto;
  bool precompute_ref_log_probs = false;

  static constexpr auto doc = "Gains and losses.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("How strongly the model is kept near the reference.", above(0)),
        field<&C::desirable_weight>("Weight of good answers.", at_least(0)),
        field<&C::undesirable_weight>("Weight of bad answers.", at_least(0)),
        field<&C::loss_type>("Loss as a function of the margin."),
        field<&C::precompute_ref_log_probs>(
            "Compute the reference's log-probabilities once before training, then free its memory."),
    };
  }
};

struct KtoConfig {
  KtoKeys own;
  PairKeys pairs;

  static config::Section section() {
    return config::flat<&KtoConfig::own, &KtoConfig::pairs>(
        "Kahneman-Tversky optimisation (arXiv:2402.01306): answers rated good or bad, without pairs.");
  }
};

}  // namespace easydel::train
