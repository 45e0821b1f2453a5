// The keys of `trainer_type: base` and `ray`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"

namespace easydel::train {

struct BaseTrainerConfig {
  double mlm_probability = 0.15;
  int64_t doc_stride = 128;

  // A language model learns texts; a model with another head, labelled ones.
  static constexpr MethodFacts facts{
      .rows = {data::RowKind::text, data::RowKind::messages, data::RowKind::prompt_completion, data::RowKind::labelled,
               data::RowKind::tokens},
      .token_loss = true,
      .weighs = true};

  static std::vector<std::string_view> keys_after_examples() { return names_of<&BaseTrainerConfig::mlm_probability>(); }

  static constexpr auto doc =
      "The loss of the model's own task (`model.task`, else that of its files), as transformers' Trainer has it: the "
      "next token, tokens that were masked, a class, several classes or numbers of a text, a class of each word, the "
      "answer to a question "
      "in a text. `ray` is the same method; several hosts are joined by torchrun, Slurm or MPI.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::mlm_probability>(
            "Of a masked language model: the share of tokens that are to be filled in. Of these 80 % are masked, 10 % "
            "are another token, and 10 % stay.",
            between(0, 1)),
        field<&C::doc_stride>(
            "Of a model that finds answers: tokens that two windows of a text have in common, which is cut into "
            "windows if it and the question have more than max_length tokens.",
            at_least(0)),
    };
  }
};

}  // namespace easydel::train
