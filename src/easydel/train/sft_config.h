// The keys of `trainer_type: sft`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "easydel/config/fields.h"
#include "easydel/data/mixture_config.h"
#include "easydel/train/method_facts.h"

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

  static constexpr MethodFacts facts{
      .rows = {data::RowKind::text, data::RowKind::messages, data::RowKind::prompt_completion, data::RowKind::tokens},
      .packs = true,
      .token_loss = true,
      .weighs = true,
      .saves = data::sequence_columns};
  DataKeys data_keys() const { return {dataset_text_field, packing, eval_packing, packing_strategy}; }

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&SftConfig::label_smoothing, &SftConfig::loss_type>();
  }

  static constexpr auto doc = "Supervised fine-tuning: the next token of texts, conversations or answers.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    constexpr auto loader = no_effect("rows are tokenized once, before the first step");
    return std::array{
        field<&C::dataset_text_field>("Field of the row that holds the text; null: mixture.text_target_field."),
        field<&C::packing>("Pack several documents into one row of full length, each attending only to itself (as "
                           "mixture.pack_tokens). Saves time if documents are shorter than max_length."),
        field<&C::packing_strategy>("greedy, bfd, bfd_split, first_fit, or wrapped (documents attend to each other); "
                                    "null: bfd with packing, greedy with mixture.pack_tokens."),
        field<&C::assistant_only_loss>(
            "Train only on the assistant's messages; requires generation blocks in the chat template."),
        field<&C::completion_only_loss>(
            "Train only on the completion; null: yes for rows with a prompt and a completion."),
        field<&C::add_special_tokens>("Whether the tokenizer adds BOS and other special tokens to plain texts."),
        field<&C::eos_token>("Token that ends each text; null: the tokenizer's EOS token."),
        field<&C::label_smoothing>("Weight of the mean over the vocabulary in each token's loss.", between(0, 1),
                                   alias("label_smoothing_factor")),
        field<&C::loss_type>("nll, or dft (each token's loss weighted by its probability, arXiv:2508.05629)."),
        field<&C::padding_free>("Batches without padding.", no_effect("batches are always flat lists of tokens")),
        field<&C::eval_packing>("Whether evaluation data is packed; null: as the training data."),
        field<&C::num_of_sequences>("Rows of the packing buffer.", loader),
        field<&C::dataset_batch_size>("Rows tokenized together.", loader),
        field<&C::dataset_num_proc>("Processes.", loader),
        field<&C::formatting_func>("A function over rows; only possible in Python.", not_built("a function in YAML")),
        field<&C::dataset_kwargs>("More arguments for the dataset.", loader),
    };
  }
};

}  // namespace easydel::train
