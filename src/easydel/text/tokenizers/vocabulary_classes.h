// The steps that transformers' classes add to a vocabulary with merges, or to a list of words. Source: transformers 5,
// the classes' tokenization_*.py.
#pragma once

#include <string_view>

#include "easydel/text/tokenizers/formats.h"

namespace easydel::text {

struct VocabularyClass {
  std::string_view names, families = {};  // classes without "Tokenizer"; model types of config.json
  bool words = false;                     // a list of words; false: byte pairs
  NamedTokens::Names named;
  bool mask_takes_blank = false;  // the mask strips the blank before it
  // For byte pairs: whether there is an unknown token, and the suffix of words.
  bool has_unknown = false;
  std::string_view suffix = {};
  // JSON of tokenizer.json. Steps before the split into bytes, one per line; "bert": BERT's, set by the configuration.
  std::string_view normalizer = {}, splits = {};
  bool bytes = true, uses_regex = true;      // pieces are bytes, after GPT-2's split
  bool obeys_prefix = true, prefix = false;  // whether add_prefix_space applies, and its default
  // Frames, as in read_frame; and whether offsets exclude the blanks at the ends of a piece: by the configuration, or
  // always, where the configuration or the class decides about a blank before a text.
  std::string_view single = {}, pair = {};
  enum class Trim : uint8_t { no, as_config, always, with_prefix, without_prefix } trim = Trim::no;
  std::string_view more_special = {};  // additional special tokens: keys of the configuration and their defaults
};

// By tokenizer_class, or by model_type if that is empty; GPT-2's or BERT's if neither names a class.
const VocabularyClass& vocabulary_class(std::string_view tokenizer_class, std::string_view model_type, bool words);

}  // namespace easydel::text
