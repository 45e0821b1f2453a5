// Finds added tokens: leftmost, then longest, with the rules for single words and surrounding spaces.
#include "easydel/text/tokenizers/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

char32_t character_before(std::string_view text, size_t at) {
  size_t from = at - 1;
  while (from > 0 && (text[from] & 0xc0) == 0x80) --from;
  return next_character(text, from);
}

std::string normalized_content(const AddedToken& token, const Normalizer* normalizer) {
  if (!token.normalized || !normalizer) return token.content;
  NormalizedText content(token.content, false);
  normalizer->apply(content);
  return content.bytes();
}

bool word_beside(char32_t c) { return is_word(c) || c == 0x200c || c == 0x200d; }

}  // namespace

void AddedTokens::add(const std::vector<AddedToken>& tokens, const Vocabulary& vocabulary,
                      const Normalizer* normalizer) {
  auto base = static_cast<TokenId>(vocabulary.size());
  TokenId largest = -1;
  for (const auto& [id, index] : by_id_) largest = std::max(largest, id);
  TokenId next = largest >= base || (base == 0 && largest >= 0) ? largest + 1 : base;
  for (AddedToken token : tokens) {
    if (token.content.empty()) continue;
    auto old = by_content_.find(token.content);
    TokenId known = old != by_content_.end() ? tokens_[old->second].id : vocabulary.find(token.content);
    token.id = known >= 0 ? known : next++;
    token.decoded = normalized_content(token, normalizer);
    if (old != by_content_.end()) {
      if (tokens_[old->second].special) token.special = true;
      tokens_[old->second] = std::move(token);
      continue;
    }
    by_id_[token.id] = tokens_.size();
    by_content_[token.content] = tokens_.size();
    tokens_.push_back(std::move(token));
  }
  before_ = finder_of(false);
  after_ = finder_of(true);
}

void AddedTokens::set_normalizer(const Normalizer* normalizer) {
  for (AddedToken& token : tokens_) token.decoded = normalized_content(token, normalizer);
  before_ = finder_of(false);
  after_ = finder_of(true);
}

AddedTokens::Finder AddedTokens::finder_of(bool normalized) const {
  Finder out;
  std::vector<std::pair<std::string_view, int32_t>> keys;
  // If tokens normalize to the same text, upstream picks one at random at each start. We pick the first, special tokens
  // before others. Reversed here, because a trie keeps the last of equal keys.
  for (bool special : {false, true})
    for (size_t i = tokens_.size(); i-- > 0;) {
      const AddedToken& token = tokens_[i];
      if (token.special != special || token.normalized != normalized) continue;
      if (by_id_.at(token.id) != i) continue;  // a later token has this id; as upstream, this one is not found
      if (token.decoded.empty()) {
        out.empty = int32_t(i);
        continue;
      }
      keys.emplace_back(token.decoded, int32_t(i));
      out.first[uint8_t(token.decoded[0])] = true;
    }
  if (std::count(out.first, out.first + 256, true) == 1)
    out.only_first = int(std::find(out.first, out.first + 256, true) - out.first);
  if (!keys.empty()) out.trie = PrefixTrie(keys);
  return out;
}

size_t AddedTokens::Finder::next(std::string_view text, size_t at) const {
  if (empty >= 0 || at >= text.size()) return at;
  if (only_first >= 0) {
    const void* found = std::memchr(text.data() + at, only_first, text.size() - at);
    return found ? size_t(static_cast<const char*>(found) - text.data()) : text.size();
  }
  while (at < text.size() && !first[uint8_t(text[at])]) ++at;
  return at;
}

void AddedTokens::find(std::string_view text, bool normalized, bool parse_special, std::vector<Found>& out) const {
  const Finder& finder = normalized ? after_ : before_;
  size_t last = 0;
  if (!finder.never_matches()) {
    for (size_t at = finder.next(text, 0); at < text.size(); at = finder.next(text, at)) {
      size_t length = 0;
      int32_t index = finder.trie.longest(text, at, length);
      if (index < 0) index = finder.empty;
      if (index < 0) {
        ++at;
        continue;
      }
      size_t begin = at, end = at + length;
      at = length ? end : at + utf8_length(static_cast<unsigned char>(text[at]));
      const AddedToken& token = tokens_[index];
      if (token.special && !parse_special) continue;
      if (token.single_word) {
        size_t behind = end;
        if (begin > 0 && word_beside(character_before(text, begin))) continue;
        if (end < text.size() && word_beside(next_character(text, behind))) continue;
      }
      if (token.lstrip)
        while (begin > 0 && is_space(character_before(text, begin))) {
          --begin;
          while ((text[begin] & 0xc0) == 0x80) --begin;
        }
      if (token.rstrip)
        for (size_t next = end; next < text.size();) {
          if (!is_space(next_character(text, next))) break;
          end = next;
        }
      // Blanks stripped by the previous token belong to it; whole tokens within them are still found.
      if (token.lstrip) begin = std::max(begin, last);
      if (last < begin) out.push_back({uint32_t(last), uint32_t(begin), -1});
      if (begin < end) out.push_back({uint32_t(begin), uint32_t(end), token.id});
      last = end;
    }
  }
  if (last < text.size()) out.push_back({uint32_t(last), uint32_t(text.size()), -1});
}

const AddedToken* AddedTokens::token(TokenId id) const {
  auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

const AddedToken* AddedTokens::token(std::string_view content) const {
  auto it = by_content_.find(std::string(content));
  return it == by_content_.end() ? nullptr : &tokens_[it->second];
}

size_t AddedTokens::count_outside(const Vocabulary& vocabulary) const {
  return size_t(
      std::count_if(tokens_.begin(), tokens_.end(), [&](auto& token) { return vocabulary.find(token.content) < 0; }));
}

}  // namespace easydel::text
