// The contents of a SentencePiece model file. Format: google/sentencepiece src/sentencepiece_model.proto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/tokenizers/model.h"

namespace easydel::text {

// Holds views into the parsed bytes.
struct SentencePieceFile {
  enum class Type : uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };
  struct Piece {
    std::string_view text;
    float score = 0;
    PieceKind kind = PieceKind::normal;
  };
  std::vector<Piece> pieces;
  Type type = Type::unigram;
  bool byte_fallback = false;
  int64_t unk = 0, bos = 1, eos = 2, pad = -1;
  std::string unknown_surface = " \xE2\x81\x87 ";
  // A NormalizerSpec. Its charsmap is compiled; empty: none.
  struct Normalization {
    std::string_view charsmap;
    bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
  };
  Normalization normalizer;    // of texts before they are encoded
  Normalization denormalizer;  // of decoded texts; without a charsmap there is none
  bool treat_whitespace_as_suffix = false;
};

// UserError "name: ...": not such a file.
SentencePieceFile parse_sentencepiece(std::string_view bytes, const std::string& name);

}  // namespace easydel::text
