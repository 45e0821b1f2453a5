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
  bool sync_ref_model = false;
  double ref_model_mixup_alpha = 0.6;
  int64_t ref_model_sync_steps = 512;

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&KtoKeys::beta, &KtoKeys::desirable_weight, &KtoKeys::undesirable_weight, &KtoKeys::loss_type,
                    &KtoKeys::precompute_ref_log_probs, &KtoKeys::sync_ref_model, &KtoKeys::ref_model_mixup_alpha,
                    &KtoKeys::ref_model_sync_steps>();
  }

  static constexpr auto doc = "Gains and losses.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("How strongly the model is kept near the reference.", above(0)),
        field<&C::desirable_weight>("Weight of good answers.", at_least(0)),
        field<&C::undesirable_weight>("Weight of bad answers.", at_least(0)),
        field<&C::loss_type>("Loss as a function of the margin. kto needs the divergence from the reference, which is "
                             "estimated from each prompt with the answer to another one of its micro-batch."),
        field<&C::precompute_ref_log_probs>(
            "Compute the reference's log-probabilities once before training, then free its memory "
            "(apo_zero_unpaired only)."),
        field<&C::sync_ref_model>("Move the reference towards the trained model (arXiv:2404.09656)."),
        field<&C::ref_model_mixup_alpha>("Weight of the trained model when the reference moves.", between(0, 1)),
        field<&C::ref_model_sync_steps>("Updates between moves of the reference.", at_least(1)),
    };
  }
  void settle(config::Keys& keys);
};

struct KtoConfig {
  KtoKeys own;
  PairKeys pairs;

  static constexpr MethodFacts facts{.rows = {data::RowKind::unpaired, data::RowKind::preference},
                                     .reference = SideModelUse::optional,
                                     .saves = data::answer_columns};

  static std::vector<std::string_view> keys_after_examples() { return keys_after_examples_of<KtoKeys, PairKeys>(); }

  static config::Section section() {
    return config::flat<&KtoConfig::own, &KtoConfig::pairs>(
        "Kahneman-Tversky optimisation (arXiv:2402.01306): answers rated good or bad, without pairs.");
  }
};

}  // namespace easydel::train
