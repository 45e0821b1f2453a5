#include "easydel/text/constrain/token_trie.h"

#include <algorithm>

namespace easydel::text::constrain {

TokenTrie::TokenTrie(std::vector<std::pair<std::string_view, TokenId>> tokens) {
  std::erase_if(tokens, [](const auto& token) { return token.first.empty() || token.first.size() > UINT16_MAX; });
  std::ranges::sort(tokens);
  ids_.reserve(tokens.size());
  std::vector<uint32_t> path;  // the nodes along the token before
  std::string_view before;
  for (const auto& [bytes, id] : tokens) {
    const auto common = size_t(std::ranges::mismatch(bytes, before).in1 - bytes.begin());
    for (; path.size() > common; path.pop_back()) nodes_[path.back()].size = uint32_t(nodes_.size() - path.back());
    for (size_t i = common; i < bytes.size(); ++i) {
      path.push_back(uint32_t(nodes_.size()));
      nodes_.push_back({.tokens_begin = uint32_t(ids_.size()), .depth = uint16_t(i + 1), .byte = uint8_t(bytes[i])});
    }
    ids_.push_back(id);
    depth_ = std::max(depth_, bytes.size());
    before = bytes;
  }
  for (; !path.empty(); path.pop_back()) nodes_[path.back()].size = uint32_t(nodes_.size() - path.back());
  nodes_.shrink_to_fit();
}

TokenBytes::TokenBytes(std::shared_ptr<const Tokenizer> tokenizer, std::vector<TokenId> ends, int64_t size)
    : tokenizer_(std::move(tokenizer)),
      size_(size > 0 ? size : int64_t(tokenizer_->id_limit())),
      tokens_(std::make_shared<const Tokens>(*tokenizer_, size_)) {
  set_ends(std::move(ends));
}

TokenBytes::TokenBytes(const TokenBytes& other, std::vector<TokenId> ends)
    : tokenizer_(other.tokenizer_), size_(other.size_), tokens_(other.tokens_) {
  set_ends(std::move(ends));
}

void TokenBytes::set_ends(std::vector<TokenId> ends) {
  ends_ = std::move(ends);
  std::ranges::sort(ends_);
  ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
  std::erase_if(ends_, [&](TokenId id) { return id < 0 || id >= size_; });
}

TokenBytes::Tokens::Tokens(const Tokenizer& tokenizer, int64_t size) {
  const auto count = static_cast<TokenId>(std::min<int64_t>(tokenizer.id_limit(), size));
  for (size_t place = 0; place < 3; ++place) {
    Side& side = sides[place];
    side.begins.reserve(size_t(count) + 1);
    for (TokenId id = 0; id < count; ++id) {
      side.begins.push_back(uint32_t(side.arena.size()));
      auto next = static_cast<TextPlace>(place);
      const auto bytes = tokenizer.bytes_of(id, next);
      side.arena += bytes.value_or("");
      side.next.push_back(next);
      if (!bytes && place == 0 && tokenizer.is_special(id)) special.emplace_back(tokenizer.token_of(id), id);
    }
    side.begins.push_back(uint32_t(side.arena.size()));
  }
  // Where texts begin like they go on, one side and one tree serve all.
  constexpr auto inside_marker = size_t(TextPlace::inside);
  for (const size_t place : {size_t{0}, size_t{2}})
    if (sides[place].arena == sides[inside_marker].arena && sides[place].begins == sides[inside_marker].begins) {
      const bool same_next =
          std::ranges::equal(sides[place].next, sides[inside_marker].next, [&](TextPlace a, TextPlace b) {
            return a == b || a == static_cast<TextPlace>(place);  // a token of no text leaves the place as it is
          });
      if (same_next) same[place] = inside_marker, sides[place] = {};
    }
  for (size_t place = 0; place < 3; ++place) {
    if (same[place] != place) continue;
    std::vector<std::pair<std::string_view, TokenId>> tokens;
    const Side& side = sides[place];
    for (TokenId id = 0; id < count; ++id)
      tokens.emplace_back(std::string_view(side.arena)
                              .substr(side.begins[size_t(id)], side.begins[size_t(id) + 1] - side.begins[size_t(id)]),
                          id);
    tries[place] = TokenTrie(std::move(tokens));
  }
}

std::string_view TokenBytes::bytes(TokenId id, TextPlace& place) const {
  const Side& side = tokens_->sides[index(place)];
  const auto at = size_t(id);
  if (id < 0 || at + 1 >= side.begins.size() || is_end(id)) return {};
  const size_t begin = side.begins[at], end = side.begins[at + 1];
  if (begin < end || side.next[at] != place) place = side.next[at];
  return std::string_view(side.arena).substr(begin, end - begin);
}

}  // namespace easydel::text::constrain
