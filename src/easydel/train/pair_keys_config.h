// Keys shared by the methods that train on pairs or rated answers. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"

namespace easydel::train {

struct PairKeys {
  std::optional<int64_t> max_prompt_length = 512;
  std::optional<int64_t> max_completion_length = {};
  int64_t label_pad_token_id = -100;
  std::optional<int64_t> padding_value = {};
  std::optional<bool> is_encoder_decoder = {};
  std::optional<int64_t> dataset_num_proc = {};
  std::optional<int64_t> logprob_vocab_chunk_size = {};
  bool disable_dropout = true;

  static std::vector<std::string_view> keys_after_examples() { return names_of<&PairKeys::disable_dropout>(); }

  static constexpr auto doc = "Rows with a prompt and answers to it.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::max_prompt_length>("Longest prompt in tokens; its end is kept.", at_least(1)),
        field<&C::max_completion_length>("Longest completion in tokens; its beginning is kept.", at_least(1)),
        field<&C::label_pad_token_id>("Label of tokens that are not trained on.",
                                      no_effect("batches are flat lists of tokens without padding")),
        field<&C::padding_value>("Id of the padding token.",
                                 no_effect("batches are flat lists of tokens without padding")),
        field<&C::is_encoder_decoder>("Whether the model has an encoder.", not_built("models with an encoder")),
        field<&C::dataset_num_proc>("Processes that tokenize.",
                                    no_effect("rows are tokenized once, before the first step")),
        field<&C::logprob_vocab_chunk_size>("Vocabulary entries scored at a time; null: by size.", at_least(1),
                                            no_effect("scores run over chunks of tokens")),
        field<&C::disable_dropout>("Train without dropout."),
    };
  }
};

}  // namespace easydel::train
