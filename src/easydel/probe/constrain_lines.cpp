#include "easydel/probe/constrain_lines.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/text/unicode.h"

namespace easydel::probe {
namespace {

using text::TextPlace;
using text::constrain::Matcher;

// Where the text cannot be written on: the first byte that no token gives which begins where other tokens have ended
// and is in the mask there. Masks depend on the text alone, so each place of it is looked at once (and once more for
// each kind of place that tokens leave behind).
std::optional<size_t> first_blocked(const std::shared_ptr<const text::constrain::Constraint>& constraint,
                                    std::string_view text) {
  const auto& tokens = constraint->tokens();
  std::vector<text::constrain::MaskWord> mask(text::constrain::mask_words(tokens.size()));
  std::vector<std::vector<TextPlace>> reached(text.size() + 1);
  reached[0].push_back(tokens.canonical(TextPlace::start));
  size_t covered = 0;
  Matcher matcher(constraint);
  for (size_t at = 0; at < text.size() && at <= covered; ++at) {
    for (const TextPlace place : reached[at]) {
      matcher.accept_bytes("", place);
      matcher.fill(mask);
      const text::constrain::TokenTrie& trie = tokens.trie(place);
      const auto& nodes = trie.nodes();
      for (size_t i = 0; i < nodes.size();) {
        const size_t end = at + nodes[i].depth;
        if (end > text.size() || uint8_t(text[end - 1]) != nodes[i].byte) {
          i += nodes[i].size;
          continue;
        }
        for (auto [id, last] = trie.tokens(i); id != last; ++id) {
          if (!text::constrain::has_token(mask, *id)) continue;
          TextPlace next = place;
          tokens.bytes(*id, next);
          next = tokens.canonical(next);
          covered = std::max(covered, end);
          if (std::ranges::find(reached[end], next) == reached[end].end()) reached[end].push_back(next);
        }
        ++i;
      }
    }
    if (!matcher.accept_bytes(text.substr(at, 1))) break;
  }
  return covered < text.size() ? std::optional(covered) : std::nullopt;
}

// The tokens that may come after the matcher's text: two hexadecimal digits for eight of them, token 8i + j is bit j.
std::string mask_after(Matcher& matcher, size_t tokens) {
  std::vector<text::constrain::MaskWord> mask(text::constrain::mask_words(int64_t(tokens)));
  matcher.fill(mask);
  std::string out;
  for (size_t i = 0; i < tokens; i += 8) {
    const auto byte = uint8_t(mask[i / 64] >> i % 64);
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace

ConstrainProbe::ConstrainProbe(std::shared_ptr<const text::Tokenizer> tokenizer,
                               const text::constrain::Language& language) {
  auto automaton = text::constrain::compile(language);
  const auto end = tokenizer->eos_id();
  constraint_ = std::make_shared<const text::constrain::Constraint>(
      std::move(automaton), std::make_shared<const text::constrain::TokenBytes>(
                                std::move(tokenizer), end ? std::vector{*end} : std::vector<text::TokenId>{}));
}

std::string ConstrainProbe::answer(std::string_view line) const try {
  const Value in = parse_json(line, "line");
  const Value* const given = in.find("text");
  if (!given || !given->is_text()) refuse("line", "'text' is missing or not a string");
  const std::string& text = given->scalar;
  Matcher matcher(constraint_);
  const bool prefix = matcher.accept_bytes(text);
  Value out = Value::map();
  out.set("accepted", Value::boolean(prefix && matcher.may_end()));
  out.set("prefix", Value::boolean(prefix));
  if (const Value* const wanted = in.find("mask"); prefix && wanted && wanted->as_bool().value_or(false)) {
    out.set("mask", Value::text(mask_after(matcher, size_t(constraint_->tokens().size()))));
    return to_json(out);
  }
  Value blocked;
  if (const auto at = first_blocked(constraint_, text)) {
    // The character that the byte belongs to.
    size_t begin = *at;
    while (begin > 0 && (uint8_t(text[begin]) & 0xc0) == 0x80) --begin;
    blocked = Value::integer(text::count_characters(std::string_view(text).substr(0, begin)));
  }
  out.set("blocked_at", std::move(blocked));
  return to_json(out);
} catch (const std::exception& error) {
  Value out = Value::map();
  out.set("error", Value::text(error.what()));
  return to_json(out);
}

}  // namespace easydel::probe
