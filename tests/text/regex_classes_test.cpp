#include "easydel/text/tokenizers/regex_classes.h"

#include <gtest/gtest.h>

#include "easydel/text/tokenizers/regex.h"

namespace easydel::text {
namespace {

TEST(RegexClasses, AreRangesOfCodePointsAndNothingElseChanges) {
  EXPECT_EQ(spelled_out(R"(\p{Zl}|\P{^Zp}|[^\p{ z_s }a]+)"),
            R"([\x{2028}]|[\x{2029}]|[^[\x{20}\x{a0}\x{1680}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}]a]+)");
  EXPECT_EQ(spelled_out(R"(\P{Zl})"), R"([^\x{2028}])");
  for (const char* same : {R"(\\p{Zl})", R"(\p{Han}+)", R"(\p{Cn})", R"(\s?\S(?!\n))", R"([a-\d])", R"(\p{)", "\\"})
    EXPECT_EQ(spelled_out(same), same);
}

TEST(RegexClasses, HoldTheLettersOfThePackagesUnicode) {
  const std::string hieroglyph = "\xF0\x94\x8F\x84";  // U+143C4, of Unicode 16
  for (const char* pattern : {R"(\p{L})", R"([\p{Lo}x])", R"(\w)", R"([^\P{L}])", R"((?i:\p{Lo}))"}) {
    std::vector<Segment> parts;
    Regex(pattern, Regex::Engine::oniguruma).find_all(hieroglyph, parts);
    ASSERT_EQ(parts.size(), 1U);
    EXPECT_TRUE(parts[0].match) << pattern;
  }
  std::vector<Segment> parts;
  Regex(R"(\w)", Regex::Engine::oniguruma).find_all("\xC2\xB2", parts);  // a superscript is a word to the engine
  EXPECT_TRUE(parts.at(0).match);
}

}  // namespace
}  // namespace easydel::text
