// Finding added tokens: leftmost, then longest, with the rules for words and spaces beside them.
#include "easydel/text/added_tokens.h"

#include <algorithm>

#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

char32_t character_before(std::string_view text, size_t at) {
  size_t from = at - 1;
  while (from > 0 && (text[from] & 0xc0) == 0x80) --from;
  return next_character(text, from);
}

bool word_beside(char32_t c) { return is_word(c) || c == 0x200c || c == 0x200d; }

}  // namespace

void AddedTokens::Finder::insert(std::string_view pattern, int32_t token) {
  if (pattern.empty()) return;
  if (children.empty()) children.emplace_back(), ends.push_back(-1);
  patterns.emplace_back(pattern);
  first[static_cast<uint8_t>(pattern[0])] = true;
  int32_t node = 0;
  for (char c : pattern) {
    auto [it, fresh] = children[node].try_emplace(static_cast<uint8_t>(c), static_cast<int32_t>(children.size()));
    node = it->second;
    if (fresh) children.emplace_back(), ends.push_back(-1);
  }
  if (ends[node] < 0) ends[node] = token;
}

int32_t AddedTokens::Finder::longest(std::string_view text, size_t at, size_t& length) const {
  int32_t node = 0, best = -1;
  for (size_t i = at; i < text.size(); ++i) {
    auto it = children[node].find(static_cast<uint8_t>(text[i]));
    if (it == children[node].end()) break;
    node = it->second;
    if (ends[node] >= 0) {
      best = ends[node];
      length = i + 1 - at;
    }
  }
  return best;
}

void AddedTokens::add(const std::vector<AddedToken>& tokens, const Vocabulary& vocabulary,
                      const Normalizer* normalizer) {
  auto base = static_cast<TokenId>(vocabulary.size());
  TokenId largest = -1;
  for (const auto& [id, index] : by_id_) largest = std::max(largest, id);
  for (AddedToken token : tokens) {
    if (token.content.empty() || by_content_.contains(token.content)) continue;
    TokenId known = vocabulary.find(token.content);
    token.id = known >= 0 ? known : largest >= base || base == 0 ? largest + 1 : base;
    largest = std::max(largest, token.id);
    by_id_[token.id] = tokens_.size();
    by_content_[token.content] = tokens_.size();
    tokens_.push_back(std::move(token));
  }
  before_ = Finder();
  after_ = Finder();
  for (bool special : {true, false})
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const AddedToken& token = tokens_[i];
      if (token.special != special) continue;
      if (!token.normalized) {
        before_.insert(token.content, static_cast<int32_t>(i));
        continue;
      }
      NormalizedText content(token.content, false);
      if (normalizer) normalizer->apply(content);
      after_.insert(content.bytes(), static_cast<int32_t>(i));
    }
}

void AddedTokens::find(std::string_view text, bool normalized, bool parse_special, std::vector<Found>& out) const {
  const Finder& finder = normalized ? after_ : before_;
  size_t last = 0;
  if (!finder.patterns.empty()) {
    for (size_t at = 0; at < text.size();) {
      if (!finder.first[static_cast<uint8_t>(text[at])]) {
        ++at;
        continue;
      }
      size_t length = 0;
      int32_t index = finder.longest(text, at, length);
      if (index < 0) {
        ++at;
        continue;
      }
      size_t begin = at, end = at + length;
      at = end;
      const AddedToken& token = tokens_[index];
      if (token.special && !parse_special) continue;
      if (token.single_word) {
        size_t behind = end;
        if (begin > 0 && word_beside(character_before(text, begin))) continue;
        if (end < text.size() && word_beside(next_character(text, behind))) continue;
      }
      if (token.lstrip)
        while (begin > last && is_space(character_before(text, begin))) {
          --begin;
          while ((text[begin] & 0xc0) == 0x80) --begin;
        }
      if (token.rstrip)
        for (size_t next = end; next < text.size();) {
          if (!is_space(next_character(text, next))) break;
          end = next;
        }
      begin = std::max(begin, last);
      at = std::max(at, end);
      if (last < begin) out.push_back({static_cast<uint32_t>(last), static_cast<uint32_t>(begin), -1});
      out.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end), token.id});
      last = end;
    }
  }
  if (last < text.size()) out.push_back({static_cast<uint32_t>(last), static_cast<uint32_t>(text.size()), -1});
}

const AddedToken* AddedTokens::token(TokenId id) const {
  auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

const AddedToken* AddedTokens::token(std::string_view content) const {
  auto it = by_content_.find(std::string(content));
  return it == by_content_.end() ? nullptr : &tokens_[it->second];
}

size_t AddedTokens::beyond(const Vocabulary& vocabulary) const {
  return static_cast<size_t>(
      std::count_if(tokens_.begin(), tokens_.end(), [&](auto& token) { return vocabulary.find(token.content) < 0; }));
}

}  // namespace easydel::text
