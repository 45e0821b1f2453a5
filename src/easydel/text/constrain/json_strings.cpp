#include "easydel/text/constrain/json_strings.h"

#include <array>
#include <map>

#include "easydel/base/error.h"
#include "easydel/text/constrain/pattern.h"
#include "easydel/text/unicode.h"

namespace easydel::text::constrain {
namespace {

constexpr std::array<std::pair<char, char>, 8> short_escapes = {
    {{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}}};

// An expression for each set of characters that leads from one state to another.
template <class Label>
std::vector<GraphEdge> edges_of(const CharDfa& texts, Grammar& grammar, Label&& label) {
  std::vector<GraphEdge> out;
  std::map<CharSet, ExprId> labels;
  const auto& states = texts.states();
  for (uint32_t i = 0; i < states.size(); ++i) {
    std::map<uint32_t, CharSet> targets;
    for (const Arrow& edge : states[i].edges) targets[edge.to].add(edge.first, edge.last);
    for (auto& [to, set] : targets) {
      const auto [at, is_new] = labels.emplace(set, 0);
      if (is_new) at->second = label(set);
      out.push_back({i + 2, to + 2, at->second});
    }
    grammar.work().spend(targets.size());
  }
  return out;
}

}  // namespace

CharDfa texts_without(const std::vector<std::string>& parts, Work& work) {
  CharDfa out = CharDfa::any();
  for (const std::string& part : parts) {
    std::string pattern;
    for (const char c : part) {
      if (std::string_view("\\^$.|?*+()[]{}/").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
    out = out.join(CharDfa::of(parse_pattern(pattern, "text", work), true, work), CharDfa::Join::first_only, work);
  }
  return out;
}

ExprId marker_expr(const std::string& text, Grammar& grammar) {
  const RuleId rule = grammar.add_rule("'" + text + "'");
  grammar.set_marker(rule);
  grammar.define(rule, grammar.literal(text));
  return grammar.call(rule);
}

ExprId plain_texts(const CharDfa& texts, Grammar& grammar) {
  std::vector<GraphEdge> edges = edges_of(texts, grammar, [&](const CharSet& set) { return grammar.chars(set); });
  edges.push_back({0, 2, no_expr});
  const auto& states = texts.states();
  for (uint32_t i = 0; i < states.size(); ++i)
    if (states[i].accepts) edges.push_back({i + 2, 1, no_expr});
  return grammar.graph(uint32_t(states.size()) + 2, std::move(edges));
}

CharSet JsonStrings::plain_chars() const {
  CharSet out(0x20, last_char);
  return out - CharSet::of("\"\\") - form_.escaped;
}

ExprId JsonStrings::quoted(const CharDfa& texts) {
  Work& work = grammar_.work();
  const CharDfa written = texts.join(texts_without({form_.quote}, work), CharDfa::Join::both, work);
  if (written.empty()) return grammar_.never();
  const ExprId quote = marker_expr(form_.quote, grammar_);
  return grammar_.sequence({quote, plain_texts(written, grammar_), quote});
}

// One hexadecimal digit between these values, in both cases.
ExprId JsonStrings::hex(uint32_t low, uint32_t high) {
  CharSet set;
  if (low < 10) set.add('0' + low, '0' + std::min(high, 9u));
  if (high >= 10) {
    const uint32_t from = std::max(low, 10u) - 10;
    set.add('a' + from, 'a' + high - 10), set.add('A' + from, 'A' + high - 10);
  }
  return grammar_.chars(set);
}

// The four digits of a range.
ExprId JsonStrings::code(uint32_t first, uint32_t last) {
  std::vector<ExprId> parts;
  std::vector<CharRange> todo = {{first, last}};
  while (!todo.empty()) {
    const CharRange range = todo.back();
    todo.pop_back();
    bool was_cut = false;
    for (uint32_t below = 1; below < 4 && !was_cut; ++below) {
      const uint32_t mask = (1u << (4 * below)) - 1;
      if ((range.first & ~mask) == (range.last & ~mask)) continue;
      const uint32_t end = range.first & mask            ? range.first | mask
                           : (range.last & mask) != mask ? (range.last & ~mask) - 1
                                                         : 0;
      if (!end) continue;
      todo.push_back({end + 1, range.last}), todo.push_back({range.first, end});
      was_cut = true;
    }
    if (was_cut) continue;
    std::vector<ExprId> digits;
    for (int shift = 12; shift >= 0; shift -= 4)
      digits.push_back(hex(range.first >> shift & 15, range.last >> shift & 15));
    parts.push_back(grammar_.sequence(std::move(digits)));
  }
  return grammar_.choice(std::move(parts));
}

ExprId JsonStrings::plain() { return grammar_.chars(plain_chars()); }

ExprId JsonStrings::escape() {
  std::vector<ExprId> parts;
  CharSet letters;
  for (const auto& [character, letter] : short_escapes)
    if (letter != '/' || form_.escapes_slashes) letters.add(uint8_t(letter), uint8_t(letter));
  parts.push_back(grammar_.chars(letters));
  parts.push_back(grammar_.sequence(
      {grammar_.literal("u"),
       grammar_.choice({code(0, 0xd7ff), code(0xe000, 0xffff),
                        grammar_.sequence({code(0xd800, 0xdbff), grammar_.literal("\\u"), code(0xdc00, 0xdfff)})})}));
  return grammar_.sequence({grammar_.literal("\\"), grammar_.choice(std::move(parts))});
}

ExprId JsonStrings::any() {
  if (!any_) {
    any_ = grammar_.add_rule("string", true);
    if (!form_.quote.empty()) {
      grammar_.define(*any_, quoted(CharDfa::any()));
      return grammar_.call(*any_);
    }
    const ExprId quote = grammar_.literal("\"");
    grammar_.define(*any_,
                    grammar_.sequence({quote, grammar_.repeat(grammar_.choice({plain(), escape()}), 0, -1), quote}));
  }
  return grammar_.call(*any_);
}

ExprId JsonStrings::of_length(int64_t min, std::optional<int64_t> max) {
  if (!form_.quote.empty()) return quoted(CharDfa::length(min, max, grammar_.work()));
  if (!escape_) {
    escape_ = grammar_.add_rule("escape", true);
    grammar_.define(*escape_, escape());
  }
  const ExprId quote = grammar_.literal("\""), one = grammar_.choice({plain(), grammar_.call(*escape_)});
  return grammar_.sequence({quote, grammar_.repeat(one, min, max.value_or(-1)), quote});
}

ExprId JsonStrings::character(const CharSet& set) {
  std::vector<ExprId> parts;
  if (const CharSet own = set & plain_chars(); !own.empty()) parts.push_back(grammar_.chars(own));
  for (const auto& [character, letter] : short_escapes)
    if (character != '/' && set.has(uint8_t(character))) parts.push_back(grammar_.literal(std::string{'\\', letter}));
  CharSet coded(0, 0x1f);
  coded.add(0x7f, last_char);
  coded.add(form_.escaped);
  coded = (coded & set) - CharSet::of("\b\f\n\r\t");
  if (coded.empty()) return grammar_.choice(std::move(parts));
  for (const auto& [known, call] : codes_)
    if (known == coded) {
      parts.push_back(call);
      return grammar_.choice(std::move(parts));
    }
  std::vector<ExprId> codes;
  const CharSet one_unit = coded & CharSet(0, 0xffff), two_units = coded & CharSet(0x10000, last_char);
  for (const CharRange& range : one_unit.ranges()) codes.push_back(code(range.first, range.last));
  for (const CharRange& range : two_units.ranges()) {
    // A pair for each run of equal first halves; runs of whole second halves go together.
    const uint32_t begin = range.first - 0x10000, end = range.last - 0x10000;
    const auto pair = [&](uint32_t high_first, uint32_t high_last, uint32_t low_first, uint32_t low_last) {
      codes.push_back(grammar_.sequence({code(0xd800 + high_first, 0xd800 + high_last), grammar_.literal("\\u"),
                                         code(0xdc00 + low_first, 0xdc00 + low_last)}));
    };
    if (begin >> 10 == end >> 10) {
      pair(begin >> 10, begin >> 10, begin & 0x3ff, end & 0x3ff);
      continue;
    }
    uint32_t first = begin >> 10, last = end >> 10;
    if (begin & 0x3ff) pair(first, first, begin & 0x3ff, 0x3ff), ++first;
    if ((end & 0x3ff) != 0x3ff) pair(last, last, 0, end & 0x3ff), --last;
    if (first <= last) pair(first, last, 0, 0x3ff);
  }
  const RuleId rule = grammar_.add_rule("escape", true);
  grammar_.define(rule, grammar_.sequence({grammar_.literal("\\u"), grammar_.choice(std::move(codes))}));
  codes_.emplace_back(coded, grammar_.call(rule));
  parts.push_back(codes_.back().second);
  return grammar_.choice(std::move(parts));
}

ExprId JsonStrings::literal(std::string_view text) {
  if (!form_.quote.empty()) {
    if (text.find(form_.quote) != std::string_view::npos) return grammar_.never();
    const ExprId quote = marker_expr(form_.quote, grammar_);
    return grammar_.sequence({quote, grammar_.literal(std::string(text)), quote});
  }
  std::vector<ExprId> parts;
  std::string plain = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t c = next_character(text, at);
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && !form_.escaped.has(c)) {
      plain += text.substr(begin, at - begin);
      continue;
    }
    parts.push_back(grammar_.literal(std::exchange(plain, "")));
    parts.push_back(character(CharSet(c, c)));
  }
  parts.push_back(grammar_.literal(plain + "\""));
  return grammar_.sequence(std::move(parts));
}

ExprId JsonStrings::of(const CharDfa& texts) {
  if (!form_.quote.empty()) return quoted(texts);
  // Node 0 is before the first quote, 1 after the last one.
  const ExprId quote = grammar_.literal("\"");
  std::vector<GraphEdge> edges = edges_of(texts, grammar_, [this](const CharSet& set) { return character(set); });
  edges.push_back({0, 2, quote});
  const auto& states = texts.states();
  for (uint32_t i = 0; i < states.size(); ++i)
    if (states[i].accepts) edges.push_back({i + 2, 1, quote});
  return grammar_.graph(uint32_t(states.size()) + 2, std::move(edges));
}

}  // namespace easydel::text::constrain
