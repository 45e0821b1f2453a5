// The model of a tokenizer: a piece of text into tokens of a vocabulary.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/vocabulary.h"

namespace easydel::text {

struct Token {
  TokenId id;
  uint32_t length;          // bytes of the piece that it stands for; 0: the same ones as the token before
  bool is_surface = false;  // an unknown token that is written as the text it stands for
};

class Model {
 public:
  virtual ~Model() = default;
  // Appends the tokens of `piece`. const and thread-safe.
  virtual void tokenize(std::string_view piece, std::vector<Token>& out) const = 0;
  // Of a model that takes raw bytes: a piece with characters that no byte is mapped to.
  virtual void tokenize_characters(std::string_view piece, std::vector<Token>& out) const { tokenize(piece, out); }
  virtual bool is_bpe() const { return false; }
  virtual bool takes_raw_bytes() const { return false; }  // pieces are bytes, not the characters they are mapped to
  // Of raw bytes: one that no token has is left out of a piece, and counts in no token's length.
  virtual bool knows_byte(uint8_t) const { return true; }
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

// What a file says of a model beside its options.
struct ModelData {
  Vocabulary vocabulary;
  std::vector<std::pair<std::string_view, std::string_view>> merges;  // in rank order; views into the file
  std::vector<double> scores;                                         // Unigram, by id
};

std::unique_ptr<const Model> make_bpe(const Value& options, ModelData data, bool byte_level);
std::unique_ptr<const Model> make_word_piece(const Value& options, ModelData data);
std::unique_ptr<const Model> make_word_level(const Value& options, ModelData data);
std::unique_ptr<const Model> make_unigram(const Value& options, ModelData data);

// What SentencePiece says of each piece.
enum class PieceKind : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
struct UnigramRules {
  int64_t unknown = -1;  // its id; -1: none
  bool byte_fallback = false;
  bool in_floats = false;             // as SentencePiece adds scores
  bool user_defined_is_zero = false;  // as llama.cpp scores such pieces
  std::vector<PieceKind> kinds;       // by id; empty: all are normal
};
std::unique_ptr<const Model> make_unigram(UnigramRules rules, ModelData data);

struct TextBpeRules {
  std::vector<uint32_t> ranks;   // by id; equal ones are told apart by their place alone. Empty: the id is the rank
  std::vector<PieceKind> kinds;  // by id; empty: all are normal
  bool mapped_bytes = false;     // the vocabulary is written in mapped characters; every byte is a piece
  bool whole_first = false;      // a text that is a piece is not cut
  bool all_kinds = false;        // control, unknown and byte pieces may come of merging too, as llama.cpp lets them
  bool byte_fallback = false;
  TokenId unknown = -1;

  uint32_t rank_of(TokenId id) const {
    if (ranks.empty()) return static_cast<uint32_t>(id);
    return static_cast<size_t>(id) < ranks.size() ? ranks[static_cast<size_t>(id)] : UINT32_MAX;
  }
  PieceKind kind_of(TokenId id) const {
    return static_cast<size_t>(id) < kinds.size() ? kinds[static_cast<size_t>(id)] : PieceKind::normal;
  }
};
TextBpeRules ranks_by_score(const std::vector<double>& scores);
std::unique_ptr<const Model> make_text_bpe(TextBpeRules rules, ModelData data);

// The longest token at each place, from left to right (RWKV's world vocabularies).
std::unique_ptr<const Model> make_longest_first(ModelData data);

}  // namespace easydel::text
