// Byte pair encoding of long pieces in linear time. A sequence of tokens is the encoding of its text if and only if
// each token is the encoding of its own text and each pair of neighbours is the encoding of their joint text: merges
// (lowest rank first, leftmost first) happen inside two neighbours in the same order as in the whole, so a merge across
// their border would happen there too. The sequence is searched from left to right, longest tokens first. Each prefix
// of the text has only one encoding, so a position that leads nowhere is never tried twice. Source: github/rust-gems,
// crate bpe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "easydel/text/tokenizers/model.h"
#include "easydel/text/tokenizers/prefix_trie.h"

namespace easydel::text {

class LongPieces {
 public:
  using Keys = std::vector<std::pair<std::string_view, int32_t>>;

  // Appends the tokens of `text`. `keys()` is called once and returns the tokens with their bytes; `encode(text, out)`
  // merges a short text. Returns false and appends nothing if no sequence of tokens spells the text.
  template <class MakeKeys, class Encode>
  bool tokenize(std::string_view text, std::vector<Token>& out, MakeKeys&& keys, Encode&& encode) const {
    std::call_once(made_, [&] { make(keys()); });
    size_t before = out.size(), at = 0;
    std::vector<bool> dead(text.size() + 1);
    size_t length = 0;
    TokenId token = first_fitting(text, 0, nullptr, length, encode);
    bool fitting = true;  // `token` is known to fit
    while (at < text.size()) {
      // The first that fits is usually right; the others are tried one by one only if it leads nowhere.
      const Token* last = out.size() > before ? &out.back() : nullptr;
      while (token >= 0 && (dead[at + length] || !(fitting || fits(text, at, last, token, length, encode)))) {
        fitting = false;
        token = shorter_[size_t(token)];
        if (token >= 0) length = lengths_[size_t(token)];
      }
      if (token >= 0) {
        out.push_back({token, uint32_t(length)});
        at += length;
        token = at < text.size() ? first_fitting(text, at, &out.back(), length, encode) : -1;
        fitting = true;
        continue;
      }
      dead[at] = true;
      if (out.size() == before) return false;
      token = out.back().id;
      length = out.back().length;
      at -= length;
      out.pop_back();
      fitting = true;  // and dead after it
    }
    return true;
  }

 private:
  void make(Keys keys) const {
    TokenId max_id = -1;
    for (auto& [text, id] : keys) max_id = std::max(max_id, id);
    shorter_.assign(size_t(max_id) + 1, -1);
    lengths_.assign(size_t(max_id) + 1, 0);
    trie_ = PrefixTrie(keys, &shorter_);
    for (auto& [text, id] : keys) lengths_[size_t(id)] = uint32_t(text.size());
  }

  // The longest token at `at` that can follow `last` (or be the first), and its length; -1: none.
  template <class Encode>
  TokenId first_fitting(std::string_view text, size_t at, const Token* last, size_t& length, Encode&& encode) const {
    struct Known {
      uint64_t owner = 0;
      TokenId left = -1, longest = -1, fitting = -1;
    };
    thread_local std::vector<Known> memory(size_t{1} << 12);
    TokenId token = trie_.longest(text, at, length), left = last ? last->id : -1;
    Known& known = memory[place(left, token)];
    if (known.owner == owner_ && known.left == left && known.longest == token) {
      if (known.fitting >= 0) length = lengths_[size_t(known.fitting)];
      return known.fitting;
    }
    known = {owner_, left, token, -1};
    while (token >= 0 && !fits(text, at, last, token, length, encode)) {
      token = shorter_[size_t(token)];
      if (token >= 0) length = lengths_[size_t(token)];
    }
    known.fitting = token;
    return token;
  }

  // The slot of a cache with 2^12 entries for a pair of neighbours.
  size_t place(TokenId left, TokenId right) const {
    uint64_t key = (uint64_t(uint32_t(left)) << 32 | uint32_t(right)) ^ owner_ << 20;
    return (key * 0x9E3779B97F4A7C15u) >> 52;
  }

  // Whether `token` can follow `last` (or be the first).
  template <class Encode>
  bool fits(std::string_view text, size_t at, const Token* last, TokenId token, size_t length, Encode&& encode) const {
    struct Known {
      uint64_t owner = 0;
      TokenId left = -1, right = -1;
      bool fits = false;
    };
    thread_local std::vector<Known> memory(size_t{1} << 12);
    TokenId left = last ? last->id : -1;
    Known& known = memory[place(left, token)];
    if (known.owner == owner_ && known.left == left && known.right == token) return known.fits;
    size_t begin = last ? at - last->length : at;
    std::vector<Token> row;
    encode(text.substr(begin, at + length - begin), row);
    bool fits =
        last ? row.size() == 2 && row[0].id == left && row[1].id == token : row.size() == 1 && row[0].id == token;
    known = {owner_, left, token, fits};
    return fits;
  }

  static inline std::atomic<uint64_t> next_{0};
  uint64_t owner_ = next_.fetch_add(1) + 1;
  mutable std::once_flag made_;
  mutable PrefixTrie trie_;
  mutable std::vector<TokenId> shorter_;   // by id: the longest other token that is a prefix of it
  mutable std::vector<uint32_t> lengths_;  // by id
};

}  // namespace easydel::text
