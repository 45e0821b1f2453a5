// The keys of `trainer_type: tpo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"

namespace easydel::train {

enum class TpoLoss : uint8_t { sigmoid, hinge, ipo, tpo_l };
constexpr auto choices(TpoLoss) {
  using enum TpoLoss;
  return std::array{config::Choice{sigmoid, "sigmoid"}, config::Choice{hinge, "hinge"}, config::Choice{ipo, "ipo"},
                    config::Choice{tpo_l, "tpo-l"}.also("tpo_l")};
}

struct TpoConfig {
  double beta = 0.01;
  TpoLoss loss_type = TpoLoss::sigmoid;
  double label_smoothing = 0;
  double tpo_alpha = 1;
  double tpo_l_gamma = 0.5;
  bool disable_dropout = true;
  std::optional<int64_t> max_prompt_length, max_completion_length, dataset_num_proc;

  static constexpr MethodFacts facts{.rows = {data::RowKind::preference}, .saves = data::triple_columns};

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&TpoConfig::beta, &TpoConfig::loss_type, &TpoConfig::label_smoothing, &TpoConfig::tpo_l_gamma,
                    &TpoConfig::disable_dropout>();
  }

  static constexpr auto doc =
      "Triple preference optimisation (arXiv:2405.16681): pairs of answers, and a gold answer (field `reference`) "
      "whose "
      "likelihood is learned. No reference model.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("Scale of the margin.", above(0)),
        field<&C::loss_type>("Loss as a function of the margin. ipo and tpo-l average over the answer's tokens."),
        field<&C::label_smoothing>("Probability that a preference is flipped (sigmoid, tpo-l).", between(0, 0.5)),
        field<&C::tpo_alpha>("Weight of the gold answer's likelihood; 0: no gold answers are needed.", at_least(0)),
        field<&C::tpo_l_gamma>("Target margin of tpo-l."),
        field<&C::disable_dropout>("Train without dropout."),
        field<&C::max_prompt_length>("Longest prompt in tokens; its end is kept. null: only max_length limits it.",
                                     at_least(1)),
        field<&C::max_completion_length>(
            "Longest completion in tokens; its beginning is kept. null: only max_length limits it.", at_least(1)),
        field<&C::dataset_num_proc>("Processes that tokenize.",
                                    no_effect("rows are tokenized once, before the first step")),
    };
  }
};

}  // namespace easydel::train
