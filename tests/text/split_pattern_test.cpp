#include "easydel/text/tokenizers/split_pattern.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/formats.h"
#include "easydel/text/tokenizers/regex.h"
#include "easydel/text/tokenizers/scanners.h"

namespace easydel::text {
namespace {

constexpr std::string_view split_patterns[] = {
    gpt2_pattern,
    cl100k_pattern,
    qwen2_pattern,
    o200k_pattern,
    tekken_pattern,
    "[0-9][0-9][0-9]",
    R"([\r\n])",
    R"(\s?\p{L}+)",
    R"(\s?\p{P}+)",
    "[一-龥ࠀ-一가-퟿]+",
    R"(\p{N}{1,3})",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?:'s|'t|'re|'ve|'m|'ll|'d)| ?\p{L}++| ?\p{N}++|\s+(?!\S)|\s++)",
    R"([^\s]+|\s+?(?=\S))",
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"([\p{Han}&&[^a]]+|\h|\w)",
};

// Characters that patterns tell apart, with those that case folding joins and those outside of the first plane.
const std::vector<std::string>& letters() {
  static const std::vector<std::string> out = {
      "a",      "b",      "s",  "S",      "t",      "T",    "l",  "L",    "d",  "e", "v", "V", "'",      " ",
      " ",      "\n",     "\r", "\t",     "1",      "2",    "9",  "-",    ".",  "/", "_", "[", "é",      "É",
      "ß",      "ſ",      "K",  "\u0301", "\u0345", "水",   "龥", "가",   "あ", "²", "Ⅷ", "٣", "\u00a0", "\u2028",
      "\u3000", "\u200d", "ǅ",  "ʰ",      "ª",      "🙂", "𝒳",  "\x01", "İ",  "ﬁ", "…", "$", "\\"};
  return out;
}

template <class List>
const auto& one_of(std::mt19937& random, const List& list) {
  return *(std::begin(list) + static_cast<std::ptrdiff_t>(random() % std::size(list)));
}

std::string random_text(std::mt19937& random) {
  std::string out;
  for (size_t i = random() % 40; i > 0; --i) {
    const std::string& one = one_of(random, letters());
    for (size_t times = random() % 4 ? 1 : random() % 6; times > 0; --times) out += one;
  }
  return out;
}

std::string random_pattern(std::mt19937& random, int depth = 0) {
  static const std::string atoms[] = {"a",
                                      "s",
                                      "l",
                                      " ",
                                      "'",
                                      "é",
                                      "[ab]",
                                      "[^a]",
                                      R"(\s)",
                                      R"(\S)",
                                      R"(\d)",
                                      R"(\w)",
                                      R"(\p{L})",
                                      R"(\p{N})",
                                      R"(\p{Lu})",
                                      "[0-9]",
                                      R"([^\r\n\p{L}\p{N}])",
                                      R"([\p{Ll}\p{M}])",
                                      R"([^\s\p{L}])",
                                      ".",
                                      R"(\.)",
                                      "水",
                                      R"(\n)",
                                      R"([\r\n])",
                                      R"(\P{L})"};
  static const std::string counts[] = {"",      "",     "",   "*",  "+",  "?",  "{2}", "{1,3}",
                                       "{0,2}", "{2,}", "*?", "+?", "??", "++", "?+",  "*+"};
  std::string out;
  size_t alternatives = 1 + (random() % 3 ? 0 : random() % 3);
  for (size_t i = 0; i < alternatives; ++i) {
    if (i) out += "|";
    for (size_t items = 1 + random() % 3; items > 0; --items) {
      uint32_t kind = random() % 12;
      if (kind == 0 && depth < 2)
        out += (random() % 2 ? "(?!" : "(?=") + random_pattern(random, depth + 1) + ")";
      else if (kind == 1 && depth < 2)
        out += (random() % 2 ? "(?:" : "(") + random_pattern(random, depth + 1) + ")" + (random() % 2 ? "?" : "");
      else if (kind == 2)
        out += std::string("(?i:") +
               one_of(random, std::initializer_list<const char*>{"'s|'t|'re", "s", "a|'ll", "st", "k"}) + ")";
      else
        out += one_of(random, atoms) + one_of(random, counts);
    }
  }
  return out;
}

std::string described(const std::vector<Segment>& parts) {
  std::string out;
  for (const Segment& part : parts) out += str(part.begin, "-", part.end, part.match ? " " : "_ ");
  return out;
}

std::string found(const Regex& regex, const std::string& text) {
  std::vector<Segment> parts;
  regex.find_all(text, parts);
  return described(parts);
}

TEST(SplitPattern, KnowsThePatternsOfTheFamilies) {
  for (std::string_view pattern : split_patterns) EXPECT_NE(SplitPattern::compile(pattern), nullptr) << pattern;
}

TEST(SplitPattern, LeavesToOnigurumaWhatItDoesNotKnow) {
  for (const char* pattern :
       {"(a",         "^a",      "a$",     R"(\ba)", R"((a)\1)", "(?<=a)b", "(?<n>a)", "(?:ab)+", "a**",  "a{2}+",
        "(?i:[a-z])", "(?i:st)", "(?i:é)", "(?>a)",  "[]a]",     R"(\K)",   "(?#x)a",  "*a",      "a{,}", "a{x"})
    EXPECT_EQ(SplitPattern::compile(pattern), nullptr) << pattern;
}

TEST(SplitPattern, FindsInTextsWhatOnigurumaFinds) {
  std::mt19937 random(7);
  for (std::string_view pattern : split_patterns) {
    Regex fast{std::string(pattern)}, slow(std::string(pattern), Regex::Engine::oniguruma);
    ASSERT_TRUE(fast.is_fast());
    for (int i = 0; i < 600; ++i) {
      std::string text = random_text(random);
      ASSERT_EQ(found(fast, text), found(slow, text)) << pattern << "\n" << text;
      if (Scanner scan = scanner_for(pattern)) {
        std::vector<uint32_t> scanned, cut;
        scan(text, scanned);
        slow.cut(text, false, cut);
        ASSERT_EQ(scanned, cut) << pattern << "\n" << text;
      }
    }
  }
}

TEST(SplitPattern, FindsWithRandomPatternsWhatOnigurumaFinds) {
  std::mt19937 random(11);
  int known = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string pattern = random_pattern(random);
    std::optional<Regex> compiled;
    try {
      compiled.emplace(pattern, Regex::Engine::oniguruma);
    } catch (const UserError&) {
      continue;
    }
    const Regex fast(pattern), &slow = *compiled;
    known += fast.is_fast();
    for (int texts = 0; texts < 10; ++texts) {
      std::string text = random_text(random);
      ASSERT_EQ(found(fast, text), found(slow, text)) << pattern << "\n" << text;
    }
  }
  EXPECT_GT(known, 1000);
}

TEST(SplitPattern, CutsBytesAsOnigurumaCutsTheCharactersTheyAreMappedTo) {
  std::mt19937 random(13);
  for (std::string_view pattern :
       {std::string_view("[0-9][0-9][0-9]"), gpt2_pattern, std::string_view(R"(\p{N}{1,3}|\p{L}+)")}) {
    Regex fast{std::string(pattern)}, slow(std::string(pattern), Regex::Engine::oniguruma);
    for (int i = 0; i < 500; ++i) {
      std::string text = random_text(random), mapped;
      std::vector<size_t> lengths = {0};  // of the mapped characters up to each byte
      for (char byte : text) {
        append_utf8(mapped, character_of_byte(static_cast<uint8_t>(byte)));
        lengths.push_back(mapped.size());
      }
      std::vector<uint32_t> of_bytes, of_characters;
      fast.cut(text, true, of_bytes);
      slow.cut(mapped, false, of_characters);
      for (uint32_t& end : of_bytes) end = static_cast<uint32_t>(lengths[end]);
      ASSERT_EQ(of_bytes, of_characters) << pattern << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace easydel::text
