// The keys of `trainer_type: sft`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "easydel/config/fields.h"
#include "easydel/data/mixture_config.h"

namespace easydel::train {

enum class TokenLoss : uint8_t { nll, dft };
constexpr auto choices(TokenLoss) {
  using enum TokenLoss;
  return std::array{config::Choice{nll, "nll"}, config::Choice{dft, "dft"}};
}

struct SftConfig {
  std::optional<std::string> dataset_text_field;
  bool packing = false;
  std::optional<data::Packing> packing_strategy;
  bool assistant_only_loss = false;
  std::optional<bool> completion_only_loss;
  bool add_special_tokens = true;
  std::optional<std::string> eos_token;
  double label_smoothing = 0;
  TokenLoss loss_type = TokenLoss::nll;
  bool padding_free = true;
  std::optional<bool> eval_packing;
  int64_t num_of_sequences = 1024;
  int64_t dataset_batch_size = 1000;
  std::optional<int64_t> dataset_num_proc;
  Value formatting_func, dataset_kwargs;

  static constexpr auto doc = "Supervised fine-tuning: the next token of texts, conversations or answers.";
  static constexpr auto fields() {
    using namespace config;
    using C = SftConfig;
    constexpr auto loader = no_effect("rows are tokenized once, before the first step");
    return std::tuple{
        field<&C::dataset_text_field>("Field of a text row; null: mixture.text_target_field."),
        field<&C::packing>("Pack documents into full rows, kept apart (as mixture.pack_tokens)."),
        field<&C::packing_strategy>("greedy, bfd, bfd_split, first_fit, wrapped (documents see each other); null: bfd "
                                    "with packing, greedy with mixture.pack_tokens."),
        field<&C::assistant_only_loss>("Learn only what the assistant says (the template's generation blocks)."),
        field<&C::completion_only_loss>("Learn only the completion; null: where rows have a prompt and a completion."),
        field<&C::add_special_tokens>("Whether the tokenizer adds its BOS and the like to plain texts."),
        field<&C::eos_token>("Token that ends each text; null: the tokenizer's."),
        field<&C::label_smoothing>("Share of the loss that is the mean over the vocabulary.", between(0, 1),
                                   alias("label_smoothing_factor")),
        field<&C::loss_type>("nll, or dft (each token's loss weighted by its probability, arXiv:2508.05629)."),
        field<&C::padding_free>("Batches without padding.", no_effect("batches are always flat lists of tokens")),
        field<&C::eval_packing>("Whether evaluation data are packed; null: as the training data."),
        field<&C::num_of_sequences>("Rows of the packing buffer.", loader),
        field<&C::dataset_batch_size>("Rows tokenized together.", loader),
        field<&C::dataset_num_proc>("Processes.", loader),
        field<&C::formatting_func>("A function over rows: only in Python.", not_built("a function in YAML")),
        field<&C::dataset_kwargs>("More arguments of the dataset.", loader),
    };
  }
};

}  // namespace easydel::train
