// The kinds of pre-tokenizers, named after "type" in the file, and the five ways to treat matches of a pattern.
#include "easydel/text/tokenizers/pre_tokenizers.h"

#include <algorithm>
#include <functional>

#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/normalizers.h"
#include "easydel/text/tokenizers/regex.h"

namespace easydel::text {
namespace {

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior read_behavior(const Value& node, Behavior fallback) {
  const Value* value = node.find("behavior");
  if (is_absent(value)) return fallback;
  std::string name = value->scalar;
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  refuse("tokenizer.json", "the behavior '" + name + "' is not known",
         "known: Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

// Joins and drops parts according to the behavior; `match` of the result is meaningless.
void behave(std::vector<Segment>& parts, Behavior behavior) {
  std::vector<Segment> out;
  bool previous = false;
  switch (behavior) {
    case Behavior::isolated:
      return;
    case Behavior::removed:
      std::erase_if(parts, [](const Segment& part) { return part.match; });
      return;
    case Behavior::contiguous:
    case Behavior::merged_with_previous:
      for (const Segment& part : parts) {
        bool join = behavior == Behavior::contiguous ? part.match == previous : part.match && !previous;
        if (join && !out.empty())
          out.back().end = part.end;
        else
          out.push_back(part);
        previous = part.match;
      }
      break;
    case Behavior::merged_with_next:
      for (size_t i = parts.size(); i-- > 0;) {
        if (parts[i].match && !previous && !out.empty())
          out.back().begin = parts[i].begin;
        else
          out.push_back(parts[i]);
        previous = parts[i].match;
      }
      std::reverse(out.begin(), out.end());
      break;
  }
  parts = std::move(out);
}

using Finder = std::function<void(std::string_view, std::vector<Segment>&)>;

// Every character for which `is` is true is a separate match.
template <class Predicate>
Finder each_character(Predicate is) {
  return [is](std::string_view text, std::vector<Segment>& out) {
    size_t last = 0;
    for (size_t at = 0; at < text.size();) {
      size_t from = at;
      if (!is(next_character(text, at))) continue;
      if (from > last) out.push_back({uint32_t(last), uint32_t(from), false});
      out.push_back({uint32_t(from), uint32_t(at), true});
      last = at;
    }
    if (last < text.size()) out.push_back({uint32_t(last), uint32_t(text.size()), false});
  };
}

Finder by_scanner(Scanner scan) {
  return [scan](std::string_view text, std::vector<Segment>& out) {
    std::vector<uint32_t> ends;
    scan(text, ends);
    uint32_t last = 0;
    for (uint32_t end : ends) out.push_back({last, end, true}), last = end;
  };
}

struct Split : PreTokenizer {
  Finder find;
  Behavior behavior;
  bool invert;
  Split(Finder find, Behavior behavior, bool invert = false)
      : find(std::move(find)), behavior(behavior), invert(invert) {}

  void cut(const NormalizedText& piece, std::vector<NormalizedText>& out) const {
    std::vector<Segment> parts;
    find(piece.bytes(), parts);
    if (invert)
      for (Segment& part : parts) part.match = !part.match;
    behave(parts, behavior);
    for (const Segment& part : parts)
      if (part.begin < part.end) out.push_back(piece.slice(part.begin, part.end));
  }
  void apply(std::vector<NormalizedText>& pieces) const override {
    std::vector<NormalizedText> out;
    for (auto& piece : pieces) cut(piece, out);
    pieces = std::move(out);
  }
};

struct ByteLevel : PreTokenizer {
  bool add_prefix_space, use_regex;
  ByteLevel(bool add_prefix_space, bool use_regex) : add_prefix_space(add_prefix_space), use_regex(use_regex) {}
  void apply(std::vector<NormalizedText>& pieces) const override {
    if (add_prefix_space)
      for (auto& piece : pieces)
        if (!piece.bytes().starts_with(' ')) piece.prepend(" ");
    if (use_regex) Split(by_scanner(scanner_for(gpt2_pattern)), Behavior::isolated).apply(pieces);
    for (auto& piece : pieces) map_bytes(piece);
  }
  bool makes_byte_level() const override { return true; }
};

struct Metaspace : PreTokenizer {
  enum class Scheme { first, never, always };
  std::string replacement;
  Scheme scheme = Scheme::always;
  bool split;

  explicit Metaspace(const Value& node)
      : replacement(string_field(node, "replacement", "\xE2\x96\x81")), split(bool_field(node, "split", true)) {
    if (!bool_field(node, "add_prefix_space", true)) scheme = Scheme::never;  // the spelling of files before 0.15
    std::string word = string_field(node, "prepend_scheme", "");
    if (word == "first") scheme = Scheme::first;
    if (word == "never") scheme = Scheme::never;
    if (word == "always") scheme = Scheme::always;
  }
  void apply(std::vector<NormalizedText>& pieces) const override {
    std::vector<NormalizedText> out;
    Split next(
        [this](std::string_view text, std::vector<Segment>& parts) {
          Pattern{replacement, {}}.find_all(text, parts);
        },
        Behavior::merged_with_next);
    for (auto& piece : pieces) {
      std::vector<Span> blanks;
      for (uint32_t i = 0; i < piece.bytes().size(); ++i)
        if (piece.bytes()[i] == ' ') blanks.push_back({i, i + 1});
      piece.replace_ranges(blanks, replacement);
      bool prefixed = scheme == Scheme::always || (scheme == Scheme::first && piece.original_begin() == 0);
      if (prefixed && !piece.bytes().starts_with(replacement)) piece.prepend(replacement);
      if (split)
        next.cut(piece, out);
      else
        out.push_back(std::move(piece));
    }
    pieces = std::move(out);
  }
  bool needs_origins() const override { return scheme == Scheme::first; }
};

struct FixedLength : PreTokenizer {
  size_t length;
  explicit FixedLength(int64_t length) : length(size_t(length)) {
    if (length < 1) refuse("tokenizer.json", "FixedLength has the length " + std::to_string(length), "at least 1");
  }
  void apply(std::vector<NormalizedText>& pieces) const override {
    std::vector<NormalizedText> out;
    for (auto& piece : pieces) {
      size_t begin = 0, at = 0, count = 0;
      while (at < piece.bytes().size()) {
        next_character(piece.bytes(), at);
        if (++count % length && at < piece.bytes().size()) continue;
        out.push_back(piece.slice(begin, at));
        begin = at;
      }
    }
    pieces = std::move(out);
  }
};

struct Sequence : PreTokenizer {
  std::vector<std::unique_ptr<const PreTokenizer>> parts;
  void apply(std::vector<NormalizedText>& pieces) const override {
    for (auto& part : parts) part->apply(pieces);
  }
  bool makes_byte_level() const override {
    for (auto& part : parts)
      if (part->makes_byte_level()) return true;
    return false;
  }
  bool needs_origins() const override {
    for (auto& part : parts)
      if (part->needs_origins()) return true;
    return false;
  }
};

bool is_word_of_rust(char32_t c) { return is_word(c) || c == 0x200c || c == 0x200d; }

// \w+|[^\w\s]+
void find_words(std::string_view text, std::vector<Segment>& out) {
  int before = -1;
  for (size_t at = 0; at < text.size();) {
    auto from = uint32_t(at);
    char32_t c = next_character(text, at);
    int kind = is_word_of_rust(c) ? 0 : is_space(c) ? 1 : 2;
    if (kind == before)
      out.back().end = uint32_t(at);
    else
      out.push_back({from, uint32_t(at), kind != 1});
    before = kind;
  }
}

// A piece ends where the script changes; text before the first character with a script is dropped, as upstream does.
void cut_at_scripts(std::string_view text, std::vector<Segment>& out) {
  int last = -1;
  for (size_t at = 0; at < text.size();) {
    auto from = uint32_t(at);
    int script = script_of(next_character(text, at));
    if (script && script != last) out.push_back({from, from, true});
    if (!out.empty()) out.back().end = uint32_t(at);
    if (script) last = script;
  }
}

std::unique_ptr<const PreTokenizer> make_split(const Value& node) {
  const Value* pattern = node.find("pattern");
  if (!pattern) refuse("tokenizer.json", "the pre-tokenizer Split has no 'pattern'", "fetch the tokenizer again");
  Behavior behavior = read_behavior(node, Behavior::isolated);
  bool invert = bool_field(node, "invert", false);
  const Value* regex = pattern->find("Regex");
  if (regex)
    if (Scanner scan = scanner_for(regex->scalar)) return std::make_unique<Split>(by_scanner(scan), behavior, invert);
  auto compiled = std::make_shared<const Pattern>(make_pattern(*pattern));
  return std::make_unique<Split>(
      [compiled](std::string_view text, std::vector<Segment>& out) { compiled->find_all(text, out); }, behavior,
      invert);
}

}  // namespace

std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const Value& node) {
  std::string type = string_field(node, "type");
  if (type == "ByteLevel")
    return std::make_unique<ByteLevel>(bool_field(node, "add_prefix_space", true), bool_field(node, "use_regex", true));
  if (type == "Split") return make_split(node);
  if (type == "Digits")
    return std::make_unique<Split>(each_character(is_number), bool_field(node, "individual_digits", false)
                                                                  ? Behavior::isolated
                                                                  : Behavior::contiguous);
  if (type == "Metaspace") return std::make_unique<Metaspace>(node);
  if (type == "Whitespace") return std::make_unique<Split>(find_words, Behavior::removed, true);
  if (type == "WhitespaceSplit") return std::make_unique<Split>(each_character(is_space), Behavior::removed);
  if (type == "Punctuation")
    return std::make_unique<Split>(each_character(is_punctuation), read_behavior(node, Behavior::isolated));
  if (type == "BertPreTokenizer") {
    auto out = std::make_unique<Sequence>();
    out->parts.push_back(std::make_unique<Split>(each_character(is_space), Behavior::removed));
    out->parts.push_back(std::make_unique<Split>(each_character(is_punctuation), Behavior::isolated));
    return out;
  }
  if (type == "CharDelimiterSplit") {
    auto delimiter = std::make_shared<const Pattern>(Pattern{string_field(node, "delimiter"), {}});
    return std::make_unique<Split>(
        [delimiter](std::string_view text, std::vector<Segment>& out) { delimiter->find_all(text, out); },
        Behavior::removed);
  }
  if (type == "UnicodeScripts") return std::make_unique<Split>(cut_at_scripts, Behavior::isolated);
  if (type == "FixedLength") return std::make_unique<FixedLength>(int_field(node, "length", 5));
  if (type == "Sequence") {
    auto out = std::make_unique<Sequence>();
    for (const Value& part : list_field(node, "pretokenizers").items) out->parts.push_back(make_pre_tokenizer(part));
    return out;
  }
  refuse("tokenizer.json", "the pre-tokenizer '" + type + "' is not known",
         "known: ByteLevel, Split, Digits, Metaspace, Whitespace, WhitespaceSplit, Punctuation, BertPreTokenizer, "
         "CharDelimiterSplit, UnicodeScripts, FixedLength, Sequence");
}

}  // namespace easydel::text
