#include "easydel/text/constrain/pattern.h"

#include <cctype>
#include <string>

#include "easydel/base/error.h"
#include "easydel/text/unicode.h"

namespace easydel::text::constrain {
namespace {

struct PatternNode {
  enum class Kind : uint8_t { chars, sequence, choice, repeat, begin, end };
  Kind kind = Kind::sequence;
  CharSet set = {};
  std::vector<PatternNode> parts = {};
  int64_t min = 0, max = 0;  // of repeat; max -1: no bound
};
using Kind = PatternNode::Kind;

CharSet digits() { return CharSet::of("0123456789"); }
CharSet word_chars() {
  CharSet out('a', 'z');
  out.add('A', 'Z'), out.add('0', '9'), out.add('_', '_');
  return out;
}
CharSet space_chars() {
  CharSet out = CharSet::of("\t\n\v\f\r ");
  for (const uint32_t c : {0xa0u, 0x1680u, 0x2028u, 0x2029u, 0x202fu, 0x205fu, 0x3000u}) out.add(c, c);
  out.add(0x2000, 0x200a);
  return out;
}
CharSet line_ends() {
  CharSet out = CharSet::of("\n\r");
  out.add(0x2028, 0x2029);
  return out;
}

CharSet of_category(std::string_view name, bool& known) {
  static constexpr std::string_view names[] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                               "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                               "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};
  known = false;
  if (name.starts_with("gc=")) name.remove_prefix(3);
  bool wanted[32] = {};
  for (size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name || (name.size() == 1 && names[i][0] == name[0])) known = wanted[i] = true;
  CharSet out;
  if (!known) return out;
  std::vector<CharRange> ranges;
  for (uint32_t c = 0; c <= last_char; ++c) {
    if (!wanted[size_t(category_of(c))]) continue;
    if (!ranges.empty() && ranges.back().last + 1 == c)
      ranges.back().last = c;
    else
      ranges.push_back({c, c});
  }
  // Added at once: one by one would sort again for each.
  std::vector<CharSet> halves;
  for (const CharRange& range : ranges) halves.emplace_back(range.first, range.last);
  while (halves.size() > 1) {
    for (size_t i = 0; i + 1 < halves.size(); i += 2) halves[i].add(halves[i + 1]), halves[i / 2] = halves[i];
    if (halves.size() % 2) halves[halves.size() / 2] = halves.back();
    halves.resize((halves.size() + 1) / 2);
  }
  return halves.empty() ? CharSet() : halves[0];
}

class PatternParser {
 public:
  PatternParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  PatternNode parse() {
    if (text_.size() > max_source_bytes)
      fail(str("has ", text_.size(), " bytes; at most ", max_source_bytes, " are accepted"), "shorten the pattern");
    if (valid_prefix(text_) != text_.size()) fail("is not valid UTF-8");
    PatternNode out = choice(0);
    if (at_ < text_.size()) fail("has a ')' without '('");
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy = "") const {
    const std::string shown = text_.size() > 80 ? std::string(text_.substr(0, 77)) + "..." : std::string(text_);
    refuse(std::string(where_), str("the pattern '", shown, "' ", problem, " (at byte ", at_, ")"), remedy);
  }
  bool more() const { return at_ < text_.size(); }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  PatternNode choice(int depth) {
    if (depth > max_group_depth) fail(str("has more than ", max_group_depth, " groups inside each other"));
    PatternNode out{Kind::choice};
    do out.parts.push_back(sequence(depth));
    while (take("|"));
    if (out.parts.size() == 1) return PatternNode(std::move(out.parts[0]));
    return out;
  }

  PatternNode sequence(int depth) {
    PatternNode out{Kind::sequence};
    while (more() && text_[at_] != '|' && text_[at_] != ')') out.parts.push_back(repeated(atom(depth)));
    return out;
  }

  PatternNode repeated(PatternNode node) {
    for (bool again = false;; again = true) {
      int64_t min = 0, max = -1;
      const size_t begin = at_;
      if (take("*")) {
      } else if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (!counts(min, max)) {
        return node;
      }
      if (again || node.kind == Kind::begin || node.kind == Kind::end)
        at_ = begin, fail("repeats something that cannot be repeated");
      take("?");  // lazy: the language is the same
      if (take("+")) fail("has a possessive repetition, which is not supported", "leave out the second '+'");
      PatternNode out{Kind::repeat};
      out.min = min, out.max = max;
      out.parts.push_back(std::move(node));
      node = std::move(out);
    }
  }

  // {n}, {n,}, {n,m}; anything else is text.
  bool counts(int64_t& min, int64_t& max) {
    size_t at = at_;
    const auto number = [&](int64_t& out) {
      const size_t begin = at;
      out = 0;
      for (; at < text_.size() && text_[at] >= '0' && text_[at] <= '9'; ++at)
        out = std::min<int64_t>(out * 10 + (text_[at] - '0'), max_repetitions + 1);
      return at > begin;
    };
    if (at >= text_.size() || text_[at++] != '{' || !number(min)) return false;
    max = min;
    if (at < text_.size() && text_[at] == ',') {
      ++at;
      if (!number(max)) max = -1;
    }
    if (at >= text_.size() || text_[at] != '}') return false;
    if (min > max_repetitions || max > max_repetitions)
      fail(str("repeats more than ", max_repetitions, " times"), "use a lower bound, or none");
    if (max >= 0 && max < min) fail("repeats at least more often than at most");
    at_ = at + 1;
    return true;
  }

  PatternNode atom(int depth) {
    if (take("(")) return group(depth);
    if (take("[")) return {Kind::chars, char_class()};
    if (take("^")) return {Kind::begin};
    if (take("$")) return {Kind::end};
    if (take(".")) return {Kind::chars, line_ends().complement()};
    if (take("\\")) {
      if (take("b") || take("B")) fail("has a word boundary, which is not supported", "write the neighbours out");
      if (take("A")) return {Kind::begin};
      if (take("z") || take("Z")) return {Kind::end};
      return {Kind::chars, escape(false)};
    }
    const char c = text_[at_];
    if (c == '*' || c == '+' || c == '?') fail("repeats nothing");
    const uint32_t letter = next_character(text_, at_);
    return {Kind::chars, {letter, letter}};
  }

  PatternNode group(int depth) {
    for (const char* around : {"?=", "?!", "?<=", "?<!"})
      if (take(around))
        fail("has a look-around, which is not supported", "say what may stand there instead, or use several patterns");
    if (take("?")) {
      const bool name = take("<") || take("P<");
      if (name) {
        const size_t end = text_.find('>', at_);
        if (end == std::string_view::npos) fail("has a group name without '>'");
        at_ = end + 1;
      } else if (!take(":")) {
        fail("has a kind of group that is not supported", "supported: (...), (?:...), (?<name>...)");
      }
    }
    PatternNode out = choice(depth + 1);
    if (!take(")")) fail("has a '(' without ')'");
    return out;
  }

  int64_t hex(size_t digits) {
    int64_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const char c = more() ? text_[at_] : ' ';
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("has an incomplete escape");
      value = value * 16 + digit;
    }
    return value;
  }

  // After the backslash.
  CharSet escape(bool in_class) {
    if (!more()) fail("ends in a backslash");
    const char c = text_[at_];
    const auto one = [](int64_t letter) { return CharSet(uint32_t(letter), uint32_t(letter)); };
    ++at_;
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return digits().complement();
      case 'w':
        return word_chars();
      case 'W':
        return word_chars().complement();
      case 's':
        return space_chars();
      case 'S':
        return space_chars().complement();
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case 'a':
        return one(7);
      case 'e':
        return one(27);
      case 'b':
        if (in_class) return one('\b');
        break;
      case 'x':
        return one(take("{") ? braces() : hex(2));
      case 'u':
        return one(take("{") ? braces() : unit());
      case 'c':
        if (more() && std::isalpha(static_cast<unsigned char>(text_[at_]))) return one(text_[at_++] % 32);
        break;
      case 'p':
      case 'P': {
        const size_t open = at_, end = text_.find('}', at_);
        if (!take("{") || end == std::string_view::npos) break;
        bool known = false;
        const CharSet set = of_category(text_.substr(at_, end - at_), known);
        if (!known)
          at_ = open, fail("has a property that is not supported", "supported: general categories, such as \\p{L}");
        at_ = end + 1;
        return c == 'p' ? set : set.complement();
      }
      case '0':
        if (!more() || text_[at_] < '0' || text_[at_] > '9') return one(0);
        break;
      default:
        break;
    }
    if (c == 'k' || (c >= '0' && c <= '9'))
      --at_, fail("has a back reference, which is not regular", "write the alternatives out");
    if (std::isalnum(static_cast<unsigned char>(c))) --at_, fail("has an escape that is not known");
    --at_;
    return one(next_character(text_, at_));
  }
  int64_t braces() {
    int64_t value = 0;
    while (more() && text_[at_] != '}' && value <= last_char) value = value * 16 + hex(1);
    if (!take("}") || value > last_char) fail("has an escape that is not a character");
    return value;
  }
  int64_t unit() {
    const int64_t high = hex(4);
    if (high < 0xd800 || high > 0xdfff) return high;
    int64_t low = 0;
    if (high > 0xdbff || !take("\\u") || (low = hex(4)) < 0xdc00 || low > 0xdfff)
      fail("has half a surrogate pair, which is not a character");
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  }

  // After the bracket.
  CharSet char_class() {
    const bool negated = take("^");
    CharSet out;
    for (;;) {
      if (!more()) fail("has a '[' without ']'");
      if (text_[at_] == ']') break;  // also at once: [] and [^], as in ECMA-262
      if (text_.substr(at_).starts_with("[:")) fail("has a POSIX class, which is not supported", "use \\d, \\w, a-z");
      const CharSet low = class_atom();
      const bool single = low.ranges().size() == 1 && low.ranges()[0].first == low.ranges()[0].last;
      if (!text_.substr(at_).starts_with("-") || text_.substr(at_).starts_with("-]") || !single) {
        out.add(low);
        continue;
      }
      ++at_;
      const CharSet high = class_atom();
      const bool ends = high.ranges().size() == 1 && high.ranges()[0].first == high.ranges()[0].last;
      if (!ends) {
        out.add(low), out.add(high), out.add('-', '-');
        continue;
      }
      if (high.ranges()[0].first < low.ranges()[0].first) fail("has a range whose ends are out of order");
      out.add(low.ranges()[0].first, high.ranges()[0].first);
    }
    ++at_;
    return negated ? out.complement() : out;
  }
  CharSet class_atom() {
    if (take("\\")) return escape(true);
    if (!more()) fail("has a '[' without ']'");
    const uint32_t letter = next_character(text_, at_);
    return {letter, letter};
  }

  std::string_view text_, where_;
  size_t at_ = 0;
};

class PatternCompiler {
 public:
  explicit PatternCompiler(Work& work) : work_(work) {}
  CharNfa compile(const PatternNode& node) {
    nfa_.start = state();
    nfa_.accept = add(node, nfa_.start);
    return std::move(nfa_);
  }

 private:
  uint32_t state() {
    work_.add_states();
    nfa_.states.emplace_back();
    return uint32_t(nfa_.states.size() - 1);
  }
  void edge(uint32_t from, uint32_t to, CharNfa::Kind kind = CharNfa::Kind::nothing, uint32_t set = 0) {
    nfa_.states[from].push_back({kind, set, to});
  }
  // Where the node ends that begins at `from`.
  uint32_t add(const PatternNode& node, uint32_t from) {
    switch (node.kind) {
      case Kind::chars: {
        const uint32_t to = state();
        nfa_.sets.push_back(node.set);
        edge(from, to, CharNfa::Kind::chars, uint32_t(nfa_.sets.size() - 1));
        return to;
      }
      case Kind::begin:
      case Kind::end: {
        const uint32_t to = state();
        edge(from, to, node.kind == Kind::begin ? CharNfa::Kind::begin : CharNfa::Kind::end);
        return to;
      }
      case Kind::sequence:
        for (const PatternNode& part : node.parts) from = add(part, from);
        return from;
      case Kind::choice: {
        const uint32_t to = state();
        for (const PatternNode& part : node.parts) {
          const uint32_t begin = state();
          edge(from, begin);
          edge(add(part, begin), to);
        }
        return to;
      }
      case Kind::repeat:
        break;
    }
    for (int64_t i = 0; i < node.min; ++i) from = add(node.parts[0], from);
    if (node.max < 0) {
      const uint32_t loop = state();
      edge(from, loop);
      edge(add(node.parts[0], loop), loop);
      return loop;
    }
    const uint32_t to = state();
    for (int64_t i = node.min; i < node.max; ++i) {
      edge(from, to);
      from = add(node.parts[0], from);
    }
    edge(from, to);
    return to;
  }

  Work& work_;
  CharNfa nfa_;
};

}  // namespace

CharNfa parse_pattern(std::string_view pattern, std::string_view where, Work& work) {
  return PatternCompiler(work).compile(PatternParser(pattern, where).parse());
}

}  // namespace easydel::text::constrain
