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
    : tokenizer_(std::move(tokenizer)), ends_(std::move(ends)) {
  const TokenId limit = tokenizer_->id_limit();
  size_ = size > 0 ? size : limit;
  std::ranges::sort(ends_);
  ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
  std::erase_if(ends_, [&](TokenId id) { return id < 0 || id >= size_; });
  const auto count = static_cast<TokenId>(std::min<int64_t>(limit, size_));
  for (size_t place = 0; place < 3; ++place) {
    Side& side = sides_[place];
    side.begins.reserve(size_t(count) + 1);
    for (TokenId id = 0; id < count; ++id) {
      side.begins.push_back(uint32_t(side.arena.size()));
      auto next = static_cast<TextPlace>(place);
      // An end of the text is never text in it, whatever it is called.
      const bool ends_text = std::ranges::binary_search(ends_, id);
      const auto bytes = ends_text ? std::nullopt : tokenizer_->bytes_of(id, next);
      side.arena += bytes.value_or("");
      side.next.push_back(next);
      if (!bytes && place == 0 && !ends_text && tokenizer_->is_special(id))
        special_.emplace_back(tokenizer_->token_of(id), id);
    }
    side.begins.push_back(uint32_t(side.arena.size()));
  }
  // Where texts begin like they go on, one side and one tree serve all.
  constexpr auto inside_marker = size_t(TextPlace::inside);
  for (const size_t place : {size_t{0}, size_t{2}})
    if (sides_[place].arena == sides_[inside_marker].arena && sides_[place].begins == sides_[inside_marker].begins) {
      const bool same_next =
          std::ranges::equal(sides_[place].next, sides_[inside_marker].next, [&](TextPlace a, TextPlace b) {
            return a == b || a == static_cast<TextPlace>(place);  // a token of no text leaves the place as it is
          });
      if (same_next) same_[place] = inside_marker, sides_[place] = {};
    }
  for (size_t place = 0; place < 3; ++place) {
    if (same_[place] != place) continue;
    std::vector<std::pair<std::string_view, TokenId>> tokens;
    const Side& side = sides_[place];
    for (TokenId id = 0; id < count; ++id)
      tokens.emplace_back(std::string_view(side.arena)
                              .substr(side.begins[size_t(id)], side.begins[size_t(id) + 1] - side.begins[size_t(id)]),
                          id);
    tries_[place] = TokenTrie(std::move(tokens));
  }
}

std::string_view TokenBytes::bytes(TokenId id, TextPlace& place) const {
  const Side& side = sides_[index(place)];
  const auto at = size_t(id);
  if (id < 0 || at + 1 >= side.begins.size()) return {};
  const size_t begin = side.begins[at], end = side.begins[at + 1];
  if (begin < end || side.next[at] != place) place = side.next[at];
  return std::string_view(side.arena).substr(begin, end - begin);
}

}  // namespace easydel::text::constrain
