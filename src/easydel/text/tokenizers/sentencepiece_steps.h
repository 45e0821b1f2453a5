// SentencePiece's normalization of a text, and its decoding of pieces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "easydel/text/tokenizers/charsmap.h"
#include "easydel/text/tokenizers/decoders.h"
#include "easydel/text/tokenizers/json_tokenizer.h"
#include "easydel/text/tokenizers/normalizers.h"
#include "easydel/text/tokenizers/prefix_trie.h"

namespace easydel::text {

// normalizer_spec of a model file, and the fields of trainer_spec that affect it.
struct SentencePieceRules {
  Charsmap charsmap;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
  bool prefix_only_at_start = false;      // not after each special token (Hugging Face's legacy = false)
  std::vector<std::string> user_defined;  // are not changed
  std::string unknown = "<unk>", unknown_surface = " \xE2\x81\x87 ";
};

// The same steps as tokenizer.json writes them. `charsmap`: its compiled bytes. `denormalizes`: the decoder has a
// denormalizer.
StepTexts sentencepiece_step_texts(const SentencePieceRules& rules, std::string_view charsmap, bool denormalizes);

std::unique_ptr<const Normalizer> make_sentencepiece_normalizer(SentencePieceRules rules);
// `denormalizer` is applied to the decoded text; null: none.
std::unique_ptr<const Decoder> make_sentencepiece_decoder(const SentencePieceRules& rules,
                                                          std::unique_ptr<const Normalizer> denormalizer = nullptr);

}  // namespace easydel::text
