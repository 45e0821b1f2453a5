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
  uint32_t length;  // bytes of the piece that it stands for
};

class Model {
 public:
  virtual ~Model() = default;
  // Appends the tokens of `piece`. const and thread-safe.
  virtual void tokenize(std::string_view piece, std::vector<Token>& out) const = 0;
  virtual bool is_bpe() const { return false; }
  virtual bool takes_raw_bytes() const { return false; }  // pieces are bytes, not the characters they are mapped to
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

}  // namespace easydel::text
