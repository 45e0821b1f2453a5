// Parses an expression to nodes, and runs them: takes the first path that matches, in the order of a backtracking
// engine.
#include "easydel/text/tokenizers/split_pattern.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "easydel/base/error.h"

namespace easydel::text {
namespace {

constexpr uint32_t no_limit = UINT32_MAX;
struct Unknown {};  // thrown for unsupported expressions; caught by compile

bool is_ascii_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::string_view signs = R"(\.+*?()[]{}|^$)";

std::string escaped(std::string_view character) {
  return str(signs.find(character) == std::string_view::npos ? "" : "\\", character);
}

}  // namespace

// Nodes are made from the end of a sequence to its beginning; `next` is the following node.
class SplitPattern::Parser {
 public:
  Parser(std::string_view pattern, SplitPattern& out) : pattern_(pattern), out_(out) {}

  void parse() {
    Rows rows = alternatives(false);
    if (at_ != pattern_.size()) throw Unknown();
    int32_t end = add(Node{});
    for (const Row& row : rows) out_.roots_.push_back(made(row, end));
  }

 private:
  struct Item;
  using Row = std::vector<Item>;
  using Rows = std::vector<Row>;
  struct Item {
    Kind kind = Kind::one;
    const CharacterClass* set = nullptr;
    uint32_t min_count = 1, max_count = 1;
    Rows rows = {};      // of a group or a lookahead
    bool folds = false;  // matches a letter of either case
    char letter = 0;
  };

  int32_t add(Node node) {
    out_.nodes_.push_back(std::move(node));
    return int32_t(out_.nodes_.size()) - 1;
  }

  int32_t made(const Row& row, int32_t next) {
    for (size_t i = row.size(); i-- > 0;) {
      const Item& item = row[i];
      Node node{item.kind, item.set, item.min_count, item.max_count, next, {}};
      if (item.kind == Kind::lookahead || item.kind == Kind::negative_lookahead) {
        Node either;
        either.kind = Kind::either;
        int32_t end = add(Node{});
        for (const Row& each : item.rows) either.first.push_back(made(each, end));
        node.first = {add(std::move(either))};
      } else if (item.kind == Kind::either) {
        for (const Row& each : item.rows) node.first.push_back(made(each, next));
      }
      next = add(std::move(node));
    }
    return next;
  }

  bool more() const { return at_ < pattern_.size(); }
  char peek() const { return more() ? pattern_[at_] : '\0'; }
  bool take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  const CharacterClass* set_of(std::string pattern) {
    for (auto& each : out_.sets_)
      if (each->pattern() == pattern) return each.get();
    out_.sets_.push_back(std::make_unique<const CharacterClass>(std::move(pattern)));
    return out_.sets_.back().get();
  }

  Rows alternatives(bool folds) {
    if (++depth_ > 20) throw Unknown();
    Rows out(1);
    while (more() && peek() != ')') {
      if (take("|")) {
        out.emplace_back();
        continue;
      }
      Item item = atom(folds);
      quantify(item);
      // Two letters may fold to one character (ss, ff, fi, fl, st, ...): left to Oniguruma.
      if (item.folds && !out.back().empty() && out.back().back().folds) {
        const std::string_view pairs[] = {"ss", "ff", "fi", "fl", "st"};
        const char both[] = {char(out.back().back().letter | 0x20), char(item.letter | 0x20)};
        if (std::find(std::begin(pairs), std::end(pairs), std::string_view(both, 2)) != std::end(pairs))
          throw Unknown();
      }
      out.back().push_back(std::move(item));
    }
    --depth_;
    return out;
  }

  Item group(bool folds) {
    Item out;
    out.kind = Kind::either;
    if (take("?=")) {
      out.kind = Kind::lookahead;
    } else if (take("?!")) {
      out.kind = Kind::negative_lookahead;
    } else if (take("?i:")) {
      folds = true;
    } else if (!take("?:") && peek() == '?') {
      throw Unknown();
    }
    out.rows = alternatives(folds);
    if (!take(")")) throw Unknown();
    return out;
  }

  // The text of a bracket expression that begins at at_.
  std::string_view bracket() {
    size_t begin = at_;
    for (int open = 0; more();) {
      char c = pattern_[at_++];
      if (c == '\\') {
        if (!more()) throw Unknown();
        ++at_;
      } else if (c == '[') {
        ++open;
        take("^");
        if (peek() == ']') throw Unknown();
      } else if (c == ']' && --open == 0) {
        return pattern_.substr(begin, at_ - begin);
      }
    }
    throw Unknown();
  }

  Item atom(bool folds) {
    Item out;
    char c = peek();
    if (take("(")) return group(folds);
    if (c == '[' || c == '.') {
      if (folds) throw Unknown();
      out.set = set_of(c == '.' ? (++at_, ".") : std::string(bracket()));
      return out;
    }
    if (c == '\\') return escape(folds);
    if (std::string_view("^$*+?{}]").find(c) != std::string_view::npos) throw Unknown();
    size_t behind = at_;
    next_character(pattern_, behind);
    std::string_view literal = pattern_.substr(at_, behind - at_);
    if (folds && literal.size() > 1) throw Unknown();
    out.folds = folds && is_ascii_letter(c);
    out.letter = c;
    out.set = set_of(out.folds ? str("(?i:", literal, ")") : escaped(literal));
    at_ = behind;
    return out;
  }

  Item escape(bool folds) {
    Item out;
    if (at_ + 1 >= pattern_.size()) throw Unknown();
    char c = pattern_[at_ + 1];
    size_t length = 2;
    if (c == 'p' || c == 'P') {
      size_t close = pattern_.find('}', at_);
      if (folds || at_ + 2 >= pattern_.size() || pattern_[at_ + 2] != '{' || close == std::string_view::npos)
        throw Unknown();
      length = close + 1 - at_;
    } else if (c == 'u') {
      length = 6;
      if (folds || at_ + length > pattern_.size()) throw Unknown();
    } else if (std::string_view("sSdDwWhH").find(c) != std::string_view::npos) {
      if (folds) throw Unknown();
    } else if (std::string_view("nrtfv-/#&~\" ").find(c) == std::string_view::npos &&
               signs.find(c) == std::string_view::npos) {
      throw Unknown();
    }
    out.set = set_of(std::string(pattern_.substr(at_, length)));
    at_ += length;
    return out;
  }

  void quantify(Item& item) {
    uint32_t min_count = 1, max_count = 1;
    if (take("*")) {
      min_count = 0, max_count = no_limit;
    } else if (take("+")) {
      max_count = no_limit;
    } else if (take("?")) {
      min_count = 0;
    } else if (peek() == '{') {
      std::tie(min_count, max_count) = interval();
      if (std::string_view("*+?{").find(peek()) != std::string_view::npos && more()) throw Unknown();
    } else {
      return;
    }
    bool lazy = pattern_[at_ - 1] != '}' && take("?"), possessive = !lazy && pattern_[at_ - 1] != '}' && take("+");
    if (more() && std::string_view("*+?{").find(peek()) != std::string_view::npos) throw Unknown();
    if (item.folds) throw Unknown();
    if (item.kind == Kind::one) {
      item.kind = lazy ? Kind::lazy : possessive ? Kind::possessive : Kind::greedy;
      item.min_count = min_count;
      item.max_count = max_count;
      return;
    }
    // Oniguruma repeats no lookahead.
    bool looks = item.rows.size() == 1 && item.rows[0].size() == 1 &&
                 (item.rows[0][0].kind == Kind::lookahead || item.rows[0][0].kind == Kind::negative_lookahead);
    if (looks || item.kind != Kind::either || min_count != 0 || max_count != 1 || possessive) throw Unknown();
    item.rows.insert(lazy ? item.rows.begin() : item.rows.end(), Row());
  }

  std::pair<uint32_t, uint32_t> interval() {
    ++at_;
    auto number = [&]() -> std::optional<uint32_t> {
      size_t begin = at_;
      uint32_t out = 0;
      while (is_digit(peek()) && out < 100000) out = out * 10 + uint32_t(pattern_[at_++] - '0');
      return at_ > begin ? std::optional(out) : std::nullopt;
    };
    auto min_count = number();
    bool both = take(",");
    auto max_count = both ? number() : min_count;
    if ((!min_count && !max_count) || !take("}")) throw Unknown();
    std::pair out(min_count.value_or(0), max_count.value_or(no_limit));
    if (out.first > out.second) throw Unknown();
    return out;
  }

  std::string_view pattern_;
  SplitPattern& out_;
  size_t at_ = 0;
  int depth_ = 0;
};

std::unique_ptr<const SplitPattern> SplitPattern::compile(std::string_view pattern) try {
  auto out = std::make_unique<SplitPattern>();
  Parser(pattern, *out).parse();
  out->find_beginnings();
  return out;
} catch (const Unknown&) {
  return nullptr;
} catch (const UserError&) {
  return nullptr;  // Oniguruma gives a better error
}

bool SplitPattern::may_begin(int32_t index, uint8_t byte, bool mapped) const {
  const Node& node = nodes_[size_t(index)];
  auto some = [&](int32_t each) { return may_begin(each, byte, mapped); };
  switch (node.kind) {
    case Kind::one:
    case Kind::greedy:
    case Kind::lazy:
    case Kind::possessive:
      // Beyond ASCII the first byte does not decide.
      if (mapped ? node.set->has_mapped(byte) : byte >= 0x80 || node.set->has_ascii(byte)) return true;
      return node.min_count == 0 && some(node.next);
    case Kind::either:
      return std::any_of(node.first.begin(), node.first.end(), some);
    case Kind::lookahead:
    case Kind::negative_lookahead:
      return some(node.next);
    case Kind::end:
      return true;
  }
  return true;
}

void SplitPattern::find_beginnings() {
  for (bool mapped : {false, true})
    for (int byte = 0; byte < 256; ++byte) {
      uint32_t roots = 0;
      for (size_t i = 0; i < roots_.size() && i < 32; ++i)
        roots |= uint32_t(may_begin(roots_[i], uint8_t(byte), mapped)) << i;
      (mapped ? mapped_ : plain_).push_back(roots);
    }
}

template <bool mapped>
bool SplitPattern::run(int32_t index, std::string_view text, size_t at, size_t& end) const {
  for (;;) {
    const Node& node = nodes_[size_t(index)];
    switch (node.kind) {
      case Kind::end:
        end = at;
        return true;
      case Kind::one:
        if (at >= text.size() || !node.set->take<mapped>(text, at)) return false;
        break;
      case Kind::possessive:
      case Kind::greedy: {
        size_t count = 0;
        while (count < node.max_count && at < text.size() && node.set->take<mapped>(text, at)) ++count;
        if (count < node.min_count) return false;
        if (node.kind == Kind::possessive || nodes_[size_t(node.next)].kind == Kind::end) break;
        for (;; --count) {
          if (run<mapped>(node.next, text, at, end)) return true;
          if (count == node.min_count) return false;
          --at;
          while (!mapped && (text[at] & 0xc0) == 0x80) --at;
        }
      }
      case Kind::lazy: {
        size_t count = 0;
        for (;; ++count) {
          if (count >= node.min_count && run<mapped>(node.next, text, at, end)) return true;
          if (count == node.max_count || at >= text.size() || !node.set->take<mapped>(text, at)) return false;
        }
      }
      case Kind::either:
        for (int32_t each : node.first)
          if (run<mapped>(each, text, at, end)) return true;
        return false;
      case Kind::lookahead:
      case Kind::negative_lookahead: {
        size_t ignored = 0;
        if (run<mapped>(node.first[0], text, at, ignored) != (node.kind == Kind::lookahead)) return false;
        break;
      }
    }
    index = node.next;
  }
}

template <bool mapped>
size_t SplitPattern::match_as(std::string_view text, size_t at) const {
  uint32_t may = at < text.size() ? (mapped ? mapped_ : plain_)[uint8_t(text[at])] : UINT32_MAX;
  size_t end = none;
  for (size_t i = 0; i < roots_.size(); ++i)
    if ((i >= 32 || may >> i & 1) && run<mapped>(roots_[i], text, at, end)) return end;
  return none;
}

template size_t SplitPattern::match_as<false>(std::string_view, size_t) const;
template size_t SplitPattern::match_as<true>(std::string_view, size_t) const;

}  // namespace easydel::text
