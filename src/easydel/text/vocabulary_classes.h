// Which steps transformers' classes put around a vocabulary with merges, or around a list of words. The figures are
// those of transformers 5: the classes' tokenization_*.py.
#pragma once

#include <string_view>

#include "easydel/text/formats.h"

namespace easydel::text {

struct VocabularyClass {
  std::string_view names, families = {};  // classes without "Tokenizer"; model types of config.json
  bool words = false;                     // a list of words; else byte pairs
  NamedTokens::Names named;
  bool mask_takes_blank = false;  // the mask takes the blank before it along
  // Of byte pairs: what they are without is an unknown token; what ends a word.
  bool has_unknown = false;
  std::string_view suffix = {};
  // JSON of tokenizer.json. Steps before the cut into bytes stand one a line; "bert": BERT's, as the config sets them.
  std::string_view normalizer = {}, splits = {};
  bool bytes = true, uses_regex = true;      // pieces are bytes, after GPT-2's cuts
  bool obeys_prefix = true, prefix = false;  // add_prefix_space counts; what it is where the config does not say
  // What stands around texts, as read_frame reads it; and whether offsets leave the blanks at a piece's ends out: as
  // the config says, or always, with what the config or the class says of the blank before a text.
  std::string_view single = {}, pair = {};
  enum class Trim : uint8_t { no, as_config, always, with_prefix, without_prefix } trim = Trim::no;
  std::string_view more_special = {};  // further special tokens: names of the config's keys, and what they are else
};

// By tokenizer_class, or by model_type where that is empty; GPT-2's or BERT's where neither names one.
const VocabularyClass& vocabulary_class(std::string_view tokenizer_class, std::string_view model_type, bool words);

}  // namespace easydel::text
