// Tokens in addition to the model's vocabulary: found in the text before or after it is normalized.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/tokenizers/normalizers.h"
#include "easydel/text/tokenizers/prefix_trie.h"
#include "easydel/text/tokenizers/vocabulary.h"

namespace easydel::text {

struct AddedToken {
  TokenId id = -1;
  std::string content;
  std::string decoded = {};  // content, normalized if `normalized`
  bool special = false, normalized = true, single_word = false, lstrip = false, rstrip = false;
};

class AddedTokens {
 public:
  struct Found {
    uint32_t begin, end;
    TokenId id;  // -1: text between tokens
  };

  // `tokens` in the file's order. As upstream, a token of the vocabulary keeps its id; others get the next free one.
  void add(const std::vector<AddedToken>& tokens, const Vocabulary& vocabulary, const Normalizer* normalizer);

  // After the file's normalizer was replaced; null: texts are not changed.
  void set_normalizer(const Normalizer* normalizer);

  bool empty(bool normalized) const { return (normalized ? after_ : before_).never_matches(); }
  // Splits `text` at the tokens that are searched before (or, if `normalized`, after) normalization.
  void find(std::string_view text, bool normalized, bool parse_special, std::vector<Found>& out) const;

  const AddedToken* token(TokenId id) const;
  const AddedToken* token(std::string_view content) const;
  size_t count_outside(const Vocabulary& vocabulary) const;  // number of tokens that are not in the vocabulary
  const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  // The leftmost match wins; among those at one place, the longest.
  struct Finder {
    PrefixTrie trie;  // values are indices into tokens_
    bool first[256] = {};
    size_t next(std::string_view text, size_t at) const;  // first place from `at` on where a match may begin
    bool never_matches() const { return trie.empty() && empty < 0; }
    int only_first = -1;  // the byte that all patterns begin with; -1: they differ
    int32_t empty = -1;   // a token that normalizes to nothing: found before every character
  };
  Finder finder_of(bool normalized) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<TokenId, size_t> by_id_;
  std::unordered_map<std::string, size_t> by_content_;
  Finder before_, after_;
};

}  // namespace easydel::text
