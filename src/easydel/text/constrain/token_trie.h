// The vocabulary as a tree of bytes, laid out in the order of a depth-first walk, so that a walk is one pass over an
// array and a subtree is skipped by adding its size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text::constrain {

class TokenTrie {
 public:
  struct Node {
    uint32_t size = 1;  // of the subtree, itself included
    uint32_t tokens_begin = 0;
    uint16_t depth = 0;  // from 1
    uint8_t byte = 0;
  };

  TokenTrie() = default;
  // Sorts `tokens`; a token of no bytes is left out. Longer ones than 65,535 bytes are left out.
  explicit TokenTrie(std::vector<std::pair<std::string_view, TokenId>> tokens);

  const std::vector<Node>& nodes() const { return nodes_; }
  // The tokens whose last byte is that of the node, and of the nodes of a subtree: they are side by side.
  std::pair<const TokenId*, const TokenId*> tokens(size_t node) const {
    return {ids_.data() + nodes_[node].tokens_begin, ids_.data() + tokens_end(node + 1)};
  }
  std::pair<const TokenId*, const TokenId*> tokens_below(size_t node) const {
    return {ids_.data() + tokens_end(node + 1), ids_.data() + tokens_end(node + nodes_[node].size)};
  }
  size_t depth() const { return depth_; }  // of the longest token, in bytes
  size_t size() const { return ids_.size(); }
  size_t memory_bytes() const { return nodes_.size() * sizeof(Node) + ids_.size() * sizeof(TokenId); }

 private:
  size_t tokens_end(size_t next) const { return next < nodes_.size() ? nodes_[next].tokens_begin : ids_.size(); }
  std::vector<Node> nodes_;
  std::vector<TokenId> ids_;
  size_t depth_ = 0;
};

// All tokens of a tokenizer that are text, as bytes; and those that end a text. Thread-safe after construction.
class TokenBytes {
 public:
  // `ends`: ids that end a text, such as the model's eos_token_id. Ids from `size` on are not in the masks; 0: as many
  // as the tokenizer has.
  TokenBytes(std::shared_ptr<const Tokenizer> tokenizer, std::vector<TokenId> ends, int64_t size = 0);
  // Other ends for the same tokens, which both share: they take megabytes, and ends differ from request to request.
  TokenBytes(const TokenBytes& other, std::vector<TokenId> ends);

  int64_t size() const { return size_; }  // tokens of a mask
  const std::vector<TokenId>& ends() const { return ends_; }
  bool is_end(TokenId id) const { return std::ranges::binary_search(ends_, id); }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  bool shares_tokens_with(const TokenBytes& other) const { return tokens_ == other.tokens_; }
  // Tokens at a place of the text, ends included; a place at which no token differs from the inside is the inside.
  const TokenTrie& trie(TextPlace place) const { return tokens_->tries[index(place)]; }
  TextPlace canonical(TextPlace place) const { return static_cast<TextPlace>(index(place)); }
  // Empty: the token is not text. An end never is, whatever it is called. `place` becomes that of the next token.
  std::string_view bytes(TokenId id, TextPlace& place) const;
  // Added tokens that are special, ends included: no text, but a marker may name one.
  const std::vector<std::pair<std::string, TokenId>>& special() const { return tokens_->special; }

 private:
  struct Side {
    std::string arena;
    std::vector<uint32_t> begins;  // by id, and one more
    std::vector<TextPlace> next;   // by id
  };
  struct Tokens {
    Tokens(const Tokenizer& tokenizer, int64_t size);
    Side sides[3];
    TokenTrie tries[3];
    size_t same[3] = {0, 1, 2};  // the place whose side is used
    std::vector<std::pair<std::string, TokenId>> special;
  };
  size_t index(TextPlace place) const { return tokens_->same[size_t(place)]; }
  void set_ends(std::vector<TokenId> ends);

  std::shared_ptr<const Tokenizer> tokenizer_;
  int64_t size_ = 0;
  std::shared_ptr<const Tokens> tokens_;
  std::vector<TokenId> ends_;  // sorted
};

}  // namespace easydel::text::constrain
