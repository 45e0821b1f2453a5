// `trainer.loss_config`: what of the token loss can be changed. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <variant>

#include "easydel/config/fields.h"

namespace easydel::train {

enum class Reduction : uint8_t { mean, sum, none };
constexpr auto choices(Reduction) {
  using enum Reduction;
  return std::array{config::Choice{mean, "mean"}, config::Choice{sum, "sum"}, config::Choice{none, "none"}.not_built()};
}

enum class Normalizer : uint8_t { real_target_tokens, total_target_tokens, average_per_sequence, no_weight };
constexpr auto choices(Normalizer) {
  using enum Normalizer;
  return std::array{config::Choice{real_target_tokens, "NUM_REAL_TARGET_TOKENS"},
                    config::Choice{total_target_tokens, "NUM_TOTAL_TARGET_TOKENS"}.not_built(),
                    config::Choice{average_per_sequence, "AVERAGE_PER_SEQUENCE"}.not_built(),
                    config::Choice{no_weight, "NO_WEIGHT_NUM_REAL_TARGET_TOKENS"}.not_built()};
}

struct LossConfig {
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  double z_loss = 0;
  std::optional<std::variant<double, Normalizer>> loss_normalizing_factor = Normalizer::real_target_tokens;
  std::optional<Reduction> reduction;
  bool divide_weight_sum = false;
  bool shift_tokens = true;
  bool break_on_nan = true;
  std::optional<int64_t> chunk_vocab_size, chunk_token_size, chunk_block_size;
  std::optional<std::string> compute_dtype;
  std::optional<int64_t> num_labels, num_classification_labels;
  std::optional<std::string> problem_type, classification_problem_type;

  static constexpr auto doc = "The loss of a token.";
  static constexpr auto fields() {
    using namespace config;
    using C = LossConfig;
    constexpr auto classes = not_built("training classifiers");
    constexpr auto tokens = no_effect("the loss runs over chunks of tokens; chunk_token_size sets their number");
    return std::tuple{
        field<&C::ignore_index>("Label that is not learned.", not_built("another ignored label than -100")),
        field<&C::label_smoothing>("Share of the loss that is the mean over the vocabulary (torch's form).",
                                   between(0, 1)),
        field<&C::z_loss>("Weight of the squared log-normalizer.", at_least(0)),
        field<&C::loss_normalizing_factor>(
            "What the summed loss is divided by: NUM_REAL_TARGET_TOKENS (labelled tokens "
            "of the whole step), a number, or null (nothing)."),
        field<&C::reduction>("mean or sum over the labelled tokens; null: by loss_normalizing_factor."),
        field<&C::divide_weight_sum>("Divide once more.", not_built("dividing twice")),
        field<&C::shift_tokens>("Whether a token's label is the next token.", not_built("unshifted labels")),
        field<&C::break_on_nan>("Stop (after a save of the last good step) when the loss is not a number."),
        field<&C::chunk_vocab_size>("Vocabulary entries at a time.", at_least(1), tokens),
        field<&C::chunk_token_size>("Tokens whose logits exist at one time; null: by size.", at_least(1)),
        field<&C::chunk_block_size>("Vocabulary entries at a time.", at_least(1), tokens),
        field<&C::compute_dtype>("Number type of the loss.", no_effect("the loss is always computed in float32")),
        field<&C::num_labels>("Classes.", classes),
        field<&C::num_classification_labels>("Classes.", classes),
        field<&C::problem_type>("Kind of classification.", classes),
        field<&C::classification_problem_type>("Kind of classification.", classes),
    };
  }
};

}  // namespace easydel::train
