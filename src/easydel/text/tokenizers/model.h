// The model of a tokenizer: encodes a piece of text as tokens of a vocabulary.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/tokenizers/vocabulary.h"

namespace easydel::text {

struct Token {
  TokenId id;
  uint32_t length;          // bytes of the piece that it covers; 0: the same bytes as the previous token
  bool is_surface = false;  // an unknown token that is decoded as the text it covers
};

// The section "model" of tokenizer.json, except the vocabulary.
struct ModelSection {
  Value options = Value::map();                     // "type" and what belongs to it
  std::vector<std::pair<TokenId, TokenId>> merges;  // BPE, in rank order
  std::vector<double> scores;                       // Unigram, by id
};

class Model {
 public:
  virtual ~Model() = default;
  // UserError that says why: none of the models of tokenizer.json works this way.
  virtual ModelSection section() const = 0;
  // Appends the tokens of `piece`. Thread-safe.
  virtual void tokenize(std::string_view piece, std::vector<Token>& out) const = 0;
  // For a model that takes raw bytes: a piece with characters that no byte maps to.
  virtual void tokenize_characters(std::string_view piece, std::vector<Token>& out) const { tokenize(piece, out); }
  virtual bool is_bpe() const { return false; }
  virtual bool takes_raw_bytes() const { return false; }  // pieces are bytes, not the characters that they map to
  // For raw bytes: a byte that no token contains is dropped from a piece and counts in no token's length.
  virtual bool knows_byte(uint8_t) const { return true; }
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

// The data of a model, without its options.
struct ModelData {
  Vocabulary vocabulary;
  std::vector<std::pair<std::string_view, std::string_view>> merges;  // in rank order; views into the file
  std::vector<double> scores;                                         // Unigram, by id
};

std::unique_ptr<const Model> make_bpe(const Value& options, ModelData data, bool byte_level);
std::unique_ptr<const Model> make_word_piece(const Value& options, ModelData data);
std::unique_ptr<const Model> make_word_level(const Value& options, ModelData data);
std::unique_ptr<const Model> make_unigram(const Value& options, ModelData data);

// SentencePiece's types of pieces.
enum class PieceKind : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
struct UnigramRules {
  int64_t unknown = -1;  // its id; -1: none
  bool byte_fallback = false;
  bool in_floats = false;             // sum scores in floats, as SentencePiece
  bool user_defined_is_zero = false;  // user-defined pieces have score 0, as in llama.cpp
  std::vector<PieceKind> kinds;       // by id; empty: all are normal
};
std::unique_ptr<const Model> make_unigram(UnigramRules rules, ModelData data);

struct TextBpeRules {
  std::vector<uint32_t> ranks;   // by id; ties are decided by position. Empty: the id is the rank
  std::vector<PieceKind> kinds;  // by id; empty: all are normal
  bool mapped_bytes = false;     // the vocabulary uses mapped characters; every byte is a piece
  bool whole_first = false;      // a text that is a piece is not split
  bool all_kinds = false;        // merging may produce control, unknown and byte pieces, as in llama.cpp
  bool byte_fallback = false;
  TokenId unknown = -1;

  uint32_t rank_of(TokenId id) const {
    if (ranks.empty()) return uint32_t(id);
    return size_t(id) < ranks.size() ? ranks[size_t(id)] : UINT32_MAX;
  }
  PieceKind kind_of(TokenId id) const { return size_t(id) < kinds.size() ? kinds[size_t(id)] : PieceKind::normal; }
};
TextBpeRules ranks_by_score(const std::vector<double>& scores);
std::unique_ptr<const Model> make_text_bpe(TextBpeRules rules, ModelData data);

// The longest token at each place, from left to right (RWKV's world vocabularies).
std::unique_ptr<const Model> make_longest_first(ModelData data);

}  // namespace easydel::text
