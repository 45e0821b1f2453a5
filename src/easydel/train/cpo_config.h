// The keys of `trainer_type: cpo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/fields.h"
#include "easydel/train/pair_keys_config.h"

namespace easydel::train {

enum class CpoLoss : uint8_t { sigmoid, hinge, ipo, simpo, alphapo };
constexpr auto choices(CpoLoss) {
  using enum CpoLoss;
  return std::array{config::Choice{sigmoid, "sigmoid"}, config::Choice{hinge, "hinge"}, config::Choice{ipo, "ipo"},
                    config::Choice{simpo, "simpo"}, config::Choice{alphapo, "alphapo"}};
}

struct CpoKeys {
  double beta = 0.1;
  double label_smoothing = 0;
  CpoLoss loss_type = CpoLoss::sigmoid;
  double cpo_alpha = 1;
  double simpo_gamma = 0.5;
  double alpha = 0;

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&CpoKeys::beta, &CpoKeys::label_smoothing, &CpoKeys::loss_type, &CpoKeys::cpo_alpha,
                    &CpoKeys::simpo_gamma, &CpoKeys::alpha>();
  }

  static constexpr auto doc = "The contrast.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("Scale of the margin.", above(0)),
        field<&C::label_smoothing>("Probability that a preference is flipped.", between(0, 0.5)),
        field<&C::loss_type>(
            "Loss as a function of the margin. ipo and simpo average over the answer's tokens; alphapo is "
            "simpo with cpo_alpha: 0."),
        field<&C::cpo_alpha>("Weight of the likelihood of the chosen answer.", at_least(0)),
        field<&C::simpo_gamma>("Target margin of simpo."),
        field<&C::alpha>("Shape of AlphaPO's reward (arXiv:2501.03884); 0: the log-probability."),
    };
  }
};

// trainer_type: simpo is cpo with these defaults (arXiv:2405.14734).
inline CpoKeys simpo_keys() {
  CpoKeys keys;
  keys.loss_type = CpoLoss::simpo;
  keys.cpo_alpha = 0;
  return keys;
}

struct CpoConfig {
  CpoKeys own;
  PairKeys pairs;

  static constexpr MethodFacts facts{.rows = {data::RowKind::preference}, .saves = data::pair_columns};

  static std::vector<std::string_view> keys_after_examples() { return keys_after_examples_of<CpoKeys, PairKeys>(); }

  static config::Section section() {
    return config::flat<&CpoConfig::own, &CpoConfig::pairs>(
        "Contrastive preference optimisation (arXiv:2401.08417), with SimPO and AlphaPO.");
  }
};

}  // namespace easydel::train
