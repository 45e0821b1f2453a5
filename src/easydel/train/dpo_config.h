// The keys of `trainer_type: dpo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"

namespace easydel::train {

enum class DpoLoss : uint8_t {
  sigmoid,
  hinge,
  ipo,
  exo_pair,
  nca_pair,
  robust,
  bco_pair,
  sppo_hard,
  aot,
  aot_unpaired,
  apo_zero,
  apo_down,
  discopop,
  sft,
  sigmoid_norm
};
constexpr auto choices(DpoLoss) {
  using enum DpoLoss;
  return std::array{config::Choice{sigmoid, "sigmoid"}.also("kto"),
                    config::Choice{hinge, "hinge"},
                    config::Choice{ipo, "ipo"},
                    config::Choice{exo_pair, "exo_pair"},
                    config::Choice{nca_pair, "nca_pair"},
                    config::Choice{robust, "robust"},
                    config::Choice{bco_pair, "bco_pair"},
                    config::Choice{sppo_hard, "sppo_hard"},
                    config::Choice{aot, "aot"},
                    config::Choice{aot_unpaired, "aot_unpaired"}.also("aot_pair"),
                    config::Choice{apo_zero, "apo_zero"},
                    config::Choice{apo_down, "apo_down"},
                    config::Choice{discopop, "discopop"},
                    config::Choice{sft, "sft"},
                    config::Choice{sigmoid_norm, "sigmoid_norm"}};
}

enum class Divergence : uint8_t { reverse_kl, forward_kl, js_divergence, alpha_divergence };
constexpr auto choices(Divergence) {
  using enum Divergence;
  return std::array{config::Choice{reverse_kl, "reverse_kl"}, config::Choice{forward_kl, "forward_kl"},
                    config::Choice{js_divergence, "js_divergence"},
                    config::Choice{alpha_divergence, "alpha_divergence"}};
}

// TRL's release whose numbers the losses have, where releases differ.
enum class DpoForm : uint8_t { trl_1, trl_0_24 };
constexpr auto choices(DpoForm) {
  using enum DpoForm;
  return std::array{config::Choice{trl_1, "trl_1"}, config::Choice{trl_0_24, "trl_0_24"}};
}

struct DpoConfig {
  double beta = 0.1;
  config::Many<DpoLoss> loss_type = {DpoLoss::sigmoid};
  std::vector<double> loss_weights;
  double label_smoothing = 0;
  bool conservative = true;
  DpoForm form = DpoForm::trl_1;
  Divergence f_divergence_type = Divergence::reverse_kl;
  double f_alpha_divergence_coef = 0.5;
  double discopop_tau = 0.05;
  std::optional<double> ld_alpha;
  std::optional<int64_t> max_prompt_length;
  std::optional<int64_t> max_completion_length;
  bool reference_free = false;
  bool precompute_ref_log_probs = false;
  bool sync_ref_model = false;
  double ref_model_mixup_alpha = 0.6;
  int64_t ref_model_sync_steps = 512;
  bool disable_dropout = true;
  bool use_weighting = false;
  std::optional<double> rpo_alpha;
  bool force_use_ref_model = false;
  int64_t label_pad_token_id = -100;
  std::optional<int64_t> padding_value, dataset_num_proc, logprob_vocab_chunk_size;
  std::optional<bool> is_encoder_decoder;
  Value tools;

  static constexpr MethodFacts facts{
      .rows = {data::RowKind::preference}, .reference = SideModelUse::optional, .saves = data::pair_columns};
  bool has_reference() const { return !reference_free; }

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&DpoConfig::beta, &DpoConfig::loss_type, &DpoConfig::loss_weights, &DpoConfig::label_smoothing,
                    &DpoConfig::conservative, &DpoConfig::form, &DpoConfig::f_divergence_type,
                    &DpoConfig::f_alpha_divergence_coef, &DpoConfig::discopop_tau, &DpoConfig::ld_alpha,
                    &DpoConfig::reference_free, &DpoConfig::precompute_ref_log_probs, &DpoConfig::sync_ref_model,
                    &DpoConfig::ref_model_mixup_alpha, &DpoConfig::ref_model_sync_steps, &DpoConfig::disable_dropout,
                    &DpoConfig::use_weighting, &DpoConfig::rpo_alpha>();
  }

  static constexpr auto doc =
      "Direct preference optimisation (arXiv:2305.18290): the chosen answer by a wider margin "
      "over the rejected one than a frozen reference has.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    constexpr auto flat = no_effect("batches are flat lists of tokens without padding");
    return std::array{
        field<&C::beta>("How strongly the model is kept near the reference; lower values let it drift further.",
                        above(0)),
        field<&C::loss_type>("Loss as a function of the margin; a list is summed."),
        field<&C::loss_weights>("Weight of each loss in a list; empty: 1 each."),
        field<&C::label_smoothing>("Probability that a preference is flipped (sigmoid, robust, exo_pair, aot).",
                                   between(0, 0.5)),
        field<&C::conservative>(
            "Whether label_smoothing also applies to sigmoid (conservative DPO); it does not in TRL 1.x."),
        field<&C::form>(
            "Release of TRL whose formulas are used where they differ. trl_0_24: bco_pair subtracts the running mean "
            "of "
            "the rewards, ipo averages log-probabilities over the answer, use_weighting is at most 1, ld_alpha is not "
            "applied to the reference."),
        field<&C::f_divergence_type>("Divergence that keeps the model near the reference (arXiv:2309.16240)."),
        field<&C::f_alpha_divergence_coef>("The alpha of alpha_divergence."),
        field<&C::discopop_tau>("Temperature of discopop.", above(0)),
        field<&C::ld_alpha>(
            "Weight of the tokens by which the longer answer exceeds the shorter one (arXiv:2409.06411); null: 1.",
            between(0, 1)),
        field<&C::max_prompt_length>("Longest prompt in tokens; its end is kept. null: only max_length limits it.",
                                     at_least(1)),
        field<&C::max_completion_length>(
            "Longest completion in tokens; its beginning is kept. null: only max_length limits it.", at_least(1)),
        field<&C::reference_free>("Compare with a uniform distribution instead of a reference model."),
        field<&C::precompute_ref_log_probs>(
            "Compute the reference's log-probabilities once before training, then free its memory."),
        field<&C::sync_ref_model>("Move the reference towards the trained model (arXiv:2404.09656)."),
        field<&C::ref_model_mixup_alpha>("Weight of the trained model when the reference moves.", between(0, 1)),
        field<&C::ref_model_sync_steps>("Updates between moves of the reference.", at_least(1)),
        field<&C::disable_dropout>("Train without dropout."),
        field<&C::use_weighting>("Weight pairs by their probability under the trained model (WPO, arXiv:2406.11827)."),
        field<&C::rpo_alpha>("Weight of an extra likelihood loss on the chosen answer (RPO, arXiv:2404.19733); null: "
                             "none.",
                             at_least(0)),
        field<&C::force_use_ref_model>("Use a reference model even if adapters are trained.",
                                       no_effect("the section reference_model says so")),
        field<&C::label_pad_token_id>("Label of tokens that are not trained on.", flat),
        field<&C::padding_value>("Id of the padding token.", flat),
        field<&C::dataset_num_proc>("Number of processes.",
                                    no_effect("rows are tokenized once, before the first step")),
        field<&C::logprob_vocab_chunk_size>("Vocabulary entries scored at a time.",
                                            no_effect("scores run over chunks of tokens")),
        field<&C::is_encoder_decoder>("Whether the model has an encoder.", not_built("models with an encoder")),
        field<&C::tools>("Tools offered to the model.", not_built("tools in preference data")),
    };
  }
  void settle(config::Keys& keys);
};

}  // namespace easydel::train
