// The kinds of normalizers, named after "type" in the file.
#include "easydel/text/tokenizers/normalizers.h"

#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/charsmap.h"
#include "easydel/text/tokenizers/json_fields.h"

namespace easydel::text {
namespace {

struct Unicode : Normalizer {
  Form form;
  explicit Unicode(Form form) : form(form) {}
  void apply(NormalizedText& text) const override {
    if (!keeps(text.bytes())) text.transform(normalize(text.bytes(), form));
  }
  bool keeps(std::string_view text) const override {
    if (form == Form::nfc) return surely_nfc(text);
    for (char c : text)
      if (c & 0x80) return false;
    return true;
  }
};

struct Lowercase : Normalizer {
  void apply(NormalizedText& text) const override {
    std::vector<Changed> changed;
    for (size_t at = 0; at < text.bytes().size();) {
      char32_t c = next_character(text.bytes(), at);
      if (c == 0x130) {  // the only character whose lower case is two characters
        changed.push_back({U'i', 0});
        changed.push_back({0x307, 1});
      } else {
        changed.push_back({lower_of(c), 0});
      }
    }
    text.transform(changed);
  }
};

struct Replace : Normalizer {
  Pattern pattern;
  std::string content;
  Replace(Pattern pattern, std::string content) : pattern(std::move(pattern)), content(std::move(content)) {}
  void apply(NormalizedText& text) const override {
    std::vector<Segment> parts;
    pattern.find_all(text.bytes(), parts);
    std::vector<Span> matches;
    for (const Segment& part : parts)
      if (part.match) matches.push_back({part.begin, part.end});
    text.replace_ranges(matches, content);
  }
};

struct Prepend : Normalizer {
  std::string content;
  explicit Prepend(std::string content) : content(std::move(content)) {}
  void apply(NormalizedText& text) const override { text.prepend(content); }
};

struct Strip : Normalizer {
  bool left, right;
  Strip(bool left, bool right) : left(left), right(right) {}
  void apply(NormalizedText& text) const override {
    const std::string& bytes = text.bytes();
    size_t begin = 0, end = bytes.size();
    while (left && begin < end) {
      size_t next = begin;
      if (!is_space(next_character(bytes, next))) break;
      begin = next;
    }
    while (right && end > begin) {
      size_t last = end - 1;
      while (last > begin && (bytes[last] & 0xc0) == 0x80) --last;
      size_t at = last;
      if (!is_space(next_character(bytes, at))) break;
      end = last;
    }
    text.keep(begin, end);
  }
};

struct StripAccents : Normalizer {
  void apply(NormalizedText& text) const override { text.remove_if(is_mark); }
};

struct ByteLevelNormalizer : Normalizer {
  void apply(NormalizedText& text) const override { map_bytes(text); }
  bool makes_byte_level() const override { return true; }
};

bool is_chinese(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

struct BertNormalizer : Normalizer {
  bool clean, chinese, strip_accents, lowercase;
  explicit BertNormalizer(const Value& node)
      : clean(bool_field(node, "clean_text", true)),
        chinese(bool_field(node, "handle_chinese_chars", true)),
        strip_accents(bool_field(node, "strip_accents", bool_field(node, "lowercase", true))),
        lowercase(bool_field(node, "lowercase", true)) {}

  void apply(NormalizedText& text) const override {
    if (clean) {
      text.remove_if([](char32_t c) {
        if (c == '\t' || c == '\n' || c == '\r') return false;
        Category g = category_of(c);
        return c == 0 || c == 0xfffd ||
               ((g == Category::Cc || g == Category::Cf || g == Category::Co) && !is_kept_by_bert(c));
      });
      map(text, [](char32_t c, std::vector<Changed>& out) { out.push_back({is_space(c) ? U' ' : c, 0}); });
    }
    if (chinese)
      map(text, [](char32_t c, std::vector<Changed>& out) {
        if (!is_chinese(c)) return out.push_back({c, 0});
        out.insert(out.end(), {{U' ', 0}, {c, 1}, {U' ', 1}});
      });
    if (strip_accents) {
      text.transform(normalize(text.bytes(), Form::nfd));
      // Two characters are no longer such marks since upstream's table was made.
      text.remove_if([](char32_t c) {
        return (category_of(c) == Category::Mn && !is_kept_by_bert(c)) || c == 0x1734 || c == 0x1171e;
      });
    }
    if (lowercase) Lowercase().apply(text);
  }

  template <class Map>
  static void map(NormalizedText& text, Map&& each) {
    std::vector<Changed> changed;
    for (size_t at = 0; at < text.bytes().size();) each(next_character(text.bytes(), at), changed);
    text.transform(changed);
  }
};

struct Nmt : Normalizer {
  void apply(NormalizedText& text) const override {
    text.remove_if([](char32_t c) {
      return (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
    });
    BertNormalizer::map(text, [](char32_t c, std::vector<Changed>& out) {
      bool blank = c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
                   c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
      out.push_back({blank ? U' ' : c, 0});
    });
  }
};

// Looks up short graphemes as a whole, and characters otherwise; the shortest key that one begins with replaces all of
// it (tokenizers' normalizers/precompiled.rs).
struct Precompiled : Normalizer {
  Charsmap map;
  explicit Precompiled(const Value& node) {
    std::string code = string_field(node, "precompiled_charsmap", "");
    if (!code.empty()) map = Charsmap(decode_base64(code));
  }

  void apply(NormalizedText& text) const override {
    const std::string& bytes = text.bytes();
    std::vector<Changed> changed;
    changed.reserve(bytes.size());
    bool any = false;
    auto replace = [&](std::string_view old) {
      auto found = map.shortest(old);
      if (!found) return false;
      any = true;
      add(old, found->replacement, changed);
      return true;
    };
    for (size_t at = 0; at < bytes.size();) {
      size_t end = grapheme_end(bytes, at);
      if (end - at < 6 && replace(std::string_view(bytes).substr(at, end - at))) {
        at = end;
        continue;
      }
      while (at < end) {
        size_t from = at;
        char32_t c = next_character(bytes, at);
        if (!replace(std::string_view(bytes).substr(from, at - from))) changed.push_back({c, 0});
      }
    }
    if (any) text.transform(changed);
  }

  static void add(std::string_view old, std::string_view replacement, std::vector<Changed>& out) {
    int64_t more = count_characters(replacement) - count_characters(old);
    for (size_t at = 0; at < replacement.size();) out.push_back({next_character(replacement, at), 0});
    // The last added characters are new, or the last one stands for the removed characters.
    if (more > 0)
      for (int64_t i = 0; i < more; ++i) out[out.size() - 1 - size_t(i)].change = 1;
    else if (more < 0 && !out.empty())
      out.back().change += int(more);
  }
};

struct Sequence : Normalizer {
  std::vector<std::unique_ptr<const Normalizer>> parts;
  void apply(NormalizedText& text) const override {
    for (auto& part : parts) part->apply(text);
  }
  bool keeps(std::string_view text) const override {
    for (auto& part : parts)
      if (!part->keeps(text)) return false;
    return true;
  }
  bool makes_byte_level() const override {
    for (auto& part : parts)
      if (part->makes_byte_level()) return true;
    return false;
  }
};

}  // namespace

Pattern make_pattern(const Value& node) {
  // An empty string is a valid pattern: it matches before every character, and at the end.
  auto literal = [](const std::string& text) {
    return Pattern{text, text.empty() ? std::make_shared<const Regex>("") : nullptr};
  };
  if (node.is_text()) return literal(node.scalar);
  if (const Value* text = node.find("String"); text && text->is_text()) return literal(text->scalar);
  if (const Value* text = node.find("Regex"); text && text->is_text())
    return {"", std::make_shared<const Regex>(text->scalar)};
  refuse("tokenizer.json", "a pattern is neither {\"String\": ...} nor {\"Regex\": ...}", "fetch the tokenizer again");
}

std::unique_ptr<const Normalizer> make_normalizer(const Value& node) {
  std::string type = string_field(node, "type");
  if (type == "NFC") return std::make_unique<Unicode>(Form::nfc);
  if (type == "NFD") return std::make_unique<Unicode>(Form::nfd);
  if (type == "NFKC") return std::make_unique<Unicode>(Form::nfkc);
  if (type == "NFKD") return std::make_unique<Unicode>(Form::nfkd);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "Prepend") return std::make_unique<Prepend>(string_field(node, "prepend"));
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  if (type == "BertNormalizer") return std::make_unique<BertNormalizer>(node);
  if (type == "Precompiled") return std::make_unique<Precompiled>(node);
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "Strip")
    return std::make_unique<Strip>(bool_field(node, "strip_left", true), bool_field(node, "strip_right", true));
  if (type == "Replace") {
    const Value* pattern = node.find("pattern");
    if (!pattern) refuse("tokenizer.json", "the normalizer Replace has no 'pattern'", "fetch the tokenizer again");
    return std::make_unique<Replace>(make_pattern(*pattern), string_field(node, "content"));
  }
  if (type == "Sequence") {
    auto out = std::make_unique<Sequence>();
    for (const Value& part : list_field(node, "normalizers").items) out->parts.push_back(make_normalizer(part));
    return out;
  }
  refuse("tokenizer.json", "the normalizer '" + type + "' is not known",
         "known: NFC, NFD, NFKC, NFKD, Lowercase, Replace, Prepend, Strip, StripAccents, ByteLevel, BertNormalizer, "
         "Nmt, Precompiled, Sequence");
}

}  // namespace easydel::text
