#include "easydel/text/constrain/gbnf.h"

#include <cctype>
#include <map>
#include <string>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/text/constrain/json_strings.h"
#include "easydel/text/unicode.h"

namespace easydel::text::constrain {
namespace {

class GbnfReader {
 public:
  GbnfReader(std::string_view text, Grammar& grammar) : text_(text), grammar_(grammar) {}

  RuleId read() {
    if (text_.size() > max_source_bytes)
      refuse("grammar", str("has ", text_.size(), " bytes; at most ", max_source_bytes, " are accepted"),
             "shorten the grammar");
    if (const size_t good = valid_prefix(text_); good != text_.size()) at_ = good, fail("is not valid UTF-8");
    blanks(true);
    while (more()) {
      const size_t begin = at_;
      const std::string name = word();
      if (name.empty()) fail("expected the name of a rule", "a rule is: name ::= what it writes");
      blanks(true);
      if (!take("::=")) fail("expected '::=' after the name of a rule", "a rule is: name ::= what it writes");
      const RuleId rule = rule_of(name, begin);
      if (grammar_.rules()[rule].body != no_expr) at_ = begin, fail("the rule '" + name + "' is there twice");
      blanks(true);
      grammar_.define(rule, choice(false, 0));
      if (more() && text_[at_] != '\n' && text_[at_] != '\r') fail("expected the end of the line, or '|'");
      blanks(true);
    }
    for (const auto& [name, rule] : rules_)
      if (grammar_.rules()[rule.first].body == no_expr) {
        at_ = rule.second;
        std::vector<std::string> known;
        for (const auto& [other, id] : rules_)
          if (grammar_.rules()[id.first].body != no_expr) known.push_back(other);
        const std::string near = nearest(name, known);
        fail("there is no rule '" + name + "'", near.empty() ? "" : "did you mean '" + near + "'?");
      }
    const auto root = rules_.find("root");
    if (root == rules_.end())
      refuse("grammar", "has no rule 'root'", "name the rule that describes the whole text root");
    return root->second.first;
  }

 private:
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy = "") const {
    FilePlace place{"grammar", 1, 1};
    for (size_t i = 0; i < at_ && i < text_.size(); ++i)
      text_[i] == '\n' ? (++place.line, place.column = 1) : ++place.column;
    refuse(Where(place), problem, remedy);
  }
  bool more() const { return at_ < text_.size(); }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void blanks(bool lines) {
    while (more()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
        ++at_;
      else if (c == '#')
        while (more() && text_[at_] != '\n') ++at_;
      else
        return;
    }
  }
  static bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_'; }
  std::string word() {
    const size_t begin = at_;
    while (more() && in_word(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  RuleId rule_of(const std::string& name, size_t at) {
    const auto known = rules_.find(name);
    if (known != rules_.end()) return known->second.first;
    return rules_.emplace(name, std::pair(grammar_.add_rule(name), at)).first->second.first;
  }

  // Inside parentheses lines do not end anything.
  ExprId choice(bool inside, int depth) {
    if (depth > max_group_depth) fail(str("more than ", max_group_depth, " groups inside each other"));
    std::vector<ExprId> parts;
    do {
      blanks(true);
      parts.push_back(sequence(inside, depth));
    } while (take("|"));
    return grammar_.choice(std::move(parts));
  }
  ExprId sequence(bool inside, int depth) {
    std::vector<ExprId> parts;
    for (;;) {
      blanks(inside);
      // The next line goes on with this rule if it begins with '|'.
      if (!inside && more() && (text_[at_] == '\n' || text_[at_] == '\r')) {
        const size_t end = at_;
        blanks(true);
        if (more() && text_[at_] == '|') break;
        at_ = end;
        break;
      }
      if (!more() || text_[at_] == '|' || text_[at_] == ')') break;
      parts.push_back(repeated(item(depth)));
    }
    return grammar_.sequence(std::move(parts));
  }
  ExprId item(int depth) {
    if (take("\"")) return literal();
    if (take("[")) return char_class();
    if (take("(")) {
      const ExprId out = choice(true, depth + 1);
      blanks(true);
      if (!take(")")) fail("a '(' without ')'");
      return out;
    }
    if (take(".")) return grammar_.chars(CharSet::any());
    if (text_[at_] == '<') return token();
    if (text_[at_] == '!') fail("'any token but one' (!<...>) is not supported", "write what may stand there instead");
    const size_t begin = at_;
    const std::string name = word();
    if (name.empty()) fail("expected a \"text\", a [class], a (group), or the name of a rule");
    return grammar_.call(rule_of(name, begin));
  }
  // "<think>": the special token that is spelled so, or its text.
  ExprId token() {
    if (text_.substr(at_).starts_with("<["))
      fail("tokens by their numbers (<[5]>) are not supported", "write a special token as it is spelled: <think>");
    const size_t end = text_.find_first_of(">\n", at_);
    if (end == std::string_view::npos || text_[end] != '>') fail("a '<' without '>'");
    const std::string spelled(text_.substr(at_, end + 1 - at_));
    at_ = end + 1;
    return marker_expr(spelled, grammar_);
  }
  ExprId repeated(ExprId part) {
    for (int depth = 0;; ++depth) {
      if (depth > max_group_depth) fail(str("more than ", max_group_depth, " repetitions of repetitions"));
      if (take("*")) {
        part = grammar_.repeat(part, 0, -1);
      } else if (take("+")) {
        part = grammar_.repeat(part, 1, -1);
      } else if (take("?")) {
        part = grammar_.repeat(part, 0, 1);
      } else if (take("{")) {
        int64_t min = number(), max = min;
        blanks(false);
        if (take(",")) {
          blanks(false);
          max = more() && text_[at_] != '}' ? number() : -1;
        }
        blanks(false);
        if (!take("}")) fail("expected '}' after the number of repetitions");
        if (max >= 0 && max < min) fail("repeats at least more often than at most");
        part = grammar_.repeat(part, min, max);
      } else {
        return part;
      }
    }
  }
  int64_t number() {
    blanks(false);
    const size_t begin = at_;
    int64_t out = 0;
    for (; more() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      out = std::min<int64_t>(out * 10 + (text_[at_] - '0'), max_repetitions + 1);
    if (at_ == begin) fail("expected a number of repetitions");
    if (out > max_repetitions) fail(str("repeats more than ", max_repetitions, " times"), "use a lower bound, or none");
    return out;
  }

  uint32_t letter() {
    if (!take("\\")) return next_character(text_, at_);
    if (!more()) fail("ends in a backslash");
    const char c = text_[at_++];
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      case 'U':
        return hex(8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return uint8_t(c);
      default:
        --at_, fail("an escape that is not known",
                    "known: \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH \\UHHHHHHHH");
    }
  }
  uint32_t hex(int digits) {
    uint32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = more() ? text_[at_] : ' ';
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("an incomplete escape");
      value = value * 16 + uint32_t(digit);
      ++at_;
    }
    if (!CharSet::any().has(value)) fail("an escape that is not a character");
    return value;
  }
  ExprId literal() {
    std::string out;
    while (more() && text_[at_] != '"') {
      if (text_[at_] == '\n') fail("a text without the closing '\"'");
      append_utf8(out, letter());
    }
    if (!take("\"")) fail("a text without the closing '\"'");
    return grammar_.literal(std::move(out));
  }
  ExprId char_class() {
    const bool negated = take("^");
    CharSet out;
    while (more() && text_[at_] != ']') {
      const uint32_t first = letter();
      uint32_t last = first;
      if (text_.substr(at_).starts_with("-") && !text_.substr(at_).starts_with("-]")) {
        ++at_;
        if (!more()) break;
        last = letter();
        if (last < first) fail("a range whose ends are out of order");
      }
      out.add(first, last);
    }
    if (!take("]")) fail("a '[' without ']'");
    return grammar_.chars(negated ? out.complement() : out);
  }

  std::string_view text_;
  Grammar& grammar_;
  size_t at_ = 0;
  std::map<std::string, std::pair<RuleId, size_t>, std::less<>> rules_;  // and where the name was first met
};

}  // namespace

RuleId read_gbnf(std::string_view text, Grammar& grammar) { return GbnfReader(text, grammar).read(); }

}  // namespace easydel::text::constrain
