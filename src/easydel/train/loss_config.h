// `trainer.loss_config`: what of a loss can be changed. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "easydel/config/fields.h"

namespace easydel::train {

enum class Reduction : uint8_t { mean, sum, none };
constexpr auto choices(Reduction) {
  using enum Reduction;
  return std::array{config::Choice{mean, "mean"}, config::Choice{sum, "sum"}, config::Choice{none, "none"}};
}

enum class Normalizer : uint8_t { real_target_tokens, total_target_tokens, average_per_sequence, no_weight };
constexpr auto choices(Normalizer) {
  using enum Normalizer;
  return std::array{
      config::Choice{real_target_tokens, "NUM_REAL_TARGET_TOKENS"}.also("num_real_target_tokens"),
      config::Choice{total_target_tokens, "NUM_TOTAL_TARGET_TOKENS"}.also("num_total_target_tokens"),
      config::Choice{average_per_sequence, "AVERAGE_PER_SEQUENCE"}.also("average_per_sequence"),
      config::Choice{no_weight, "NO_WEIGHT_NUM_REAL_TARGET_TOKENS"}.also("no_weight_num_real_target_tokens")};
}

struct LossConfig {
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  double z_loss = 0;
  std::optional<std::variant<double, Normalizer>> loss_normalizing_factor = Normalizer::real_target_tokens;
  std::optional<Reduction> reduction = {};
  bool divide_weight_sum = false;
  bool shift_tokens = true;
  bool break_on_nan = true;
  std::optional<int64_t> chunk_vocab_size = {}, chunk_token_size = {}, chunk_block_size = {};
  std::optional<std::string> compute_dtype = {};
  std::optional<int64_t> num_labels = {}, num_classification_labels = {};
  std::optional<std::string> problem_type = {}, classification_problem_type = {};

  static constexpr auto doc = "The loss.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::ignore_index>(
            "Label that is ignored in addition to -100: the id of a token that is never predicted."),
        field<&C::label_smoothing>("Share of the loss that is the mean over the vocabulary (torch's form).",
                                   between(0, 1)),
        field<&C::z_loss>("Weight of the squared log-normalizer.", at_least(0)),
        field<&C::loss_normalizing_factor>(
            "What the summed loss is divided by: NUM_REAL_TARGET_TOKENS (labelled tokens of the whole step; "
            "NO_WEIGHT_NUM_REAL_TARGET_TOKENS is the same), NUM_TOTAL_TARGET_TOKENS (all that have a next token), "
            "AVERAGE_PER_SEQUENCE (each sequence counts alike), a number, or null (nothing)."),
        field<&C::reduction>("mean or sum over the labelled tokens; none: not reduced (not for training); null: by "
                             "loss_normalizing_factor."),
        field<&C::divide_weight_sum>("Divide once more by the sum of the tokens' weights."),
        field<&C::shift_tokens>("Whether a token's label is the next token; false: it is the token itself."),
        field<&C::break_on_nan>("Stop when the loss is NaN or infinite, after saving the last good step."),
        field<&C::chunk_vocab_size>("Vocabulary entries per chunk (trainers use chunks of tokens instead).",
                                    at_least(1)),
        field<&C::chunk_token_size>("Tokens per chunk of logits; null: chosen by size.", at_least(1)),
        field<&C::chunk_block_size>("Vocabulary entries per chunk (trainers use chunks of tokens instead).",
                                    at_least(1)),
        field<&C::compute_dtype>("Dtype of the loss.", no_effect("the loss is always computed in float32")),
        field<&C::num_labels>("Classes of a classifier.", at_least(1)),
        field<&C::num_classification_labels>("Classes of a classifier.", at_least(1)),
        field<&C::problem_type>(
            "regression, single_label_classification or multi_label_classification; null: detected from the labels."),
        field<&C::classification_problem_type>("As problem_type."),
    };
  }
};

}  // namespace easydel::train
