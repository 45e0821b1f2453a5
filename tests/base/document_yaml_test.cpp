#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::refusal;

std::string refused(std::string_view text) {
  return refusal([&] { parse_yaml(text, "run.yaml"); });
}

TEST(Yaml, KnowsTheLineAndColumnOfEveryKeyAndValue) {
  const Value root = parse_yaml("a:\n  b: 1\n  \"c\": [x, y]\n");
  const Value& inner = root.entries.at(0).second;
  EXPECT_EQ(root.key_places.at(0).line, 1);
  EXPECT_EQ(inner.key_places.at(1).line, 3);
  EXPECT_EQ(inner.key_places.at(1).column, 3);
  EXPECT_EQ(inner.find("b")->place.column, 6);
  EXPECT_EQ(inner.find("c")->items.at(1).place.column, 12);
}

TEST(Yaml, CountsColumnsInBytesAfterLettersOfSeveral) {
  const Value root = parse_yaml("äö: {ü: 1}\n");
  EXPECT_EQ(root.entries.at(0).second.place.column, 7);
  EXPECT_EQ(root.entries.at(0).second.find("ü")->place.column, 12);
}

TEST(Yaml, ReadsNumbersAsTheCoreSchemaDoes) {
  const auto number = [](const char* text) { return parse_yaml(text).as_double(); };
  EXPECT_EQ(number("1e-5"), 1e-5);
  EXPECT_EQ(number("2.0E+3"), 2000);
  EXPECT_EQ(number("-.5"), -0.5);
  EXPECT_EQ(number("0x10"), 16);
  EXPECT_EQ(number("0o17"), 15);
  EXPECT_EQ(number("017"), 17);
  EXPECT_EQ(number(".inf"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(number("1_000"), std::nullopt);
  EXPECT_EQ(number("1e"), std::nullopt);
  EXPECT_EQ(number("'1'"), std::nullopt);
  EXPECT_EQ(parse_yaml("1e3").as_int(), 1000);
  EXPECT_EQ(parse_yaml("2.5").as_int(), std::nullopt);
  EXPECT_EQ(parse_yaml("9223372036854775807").as_int(), INT64_MAX);
  EXPECT_EQ(parse_yaml("9223372036854775808").as_int(), std::nullopt);
}

TEST(Yaml, LeavesYesAndOnAsWords) {
  for (const char* word : {"yes", "no", "on", "off", "y", "n"}) {
    EXPECT_EQ(parse_yaml(word).as_bool(), std::nullopt) << word;
    EXPECT_EQ(parse_yaml(word).as_string(), word);
  }
  EXPECT_EQ(parse_yaml("true").as_bool(), true);
  EXPECT_EQ(parse_yaml("False").as_bool(), false);
  EXPECT_EQ(parse_yaml("'true'").as_bool(), std::nullopt);
}

TEST(Yaml, ExpandsAnchorsAndLetsOwnKeysWinOverMergedOnes) {
  const Value root = parse_yaml("base: &b {x: 1, y: 2}\nmore: &m {y: 9, z: 3}\nall:\n  <<: [*b, *m]\n  x: 7\n");
  EXPECT_EQ(to_json(*root.find("all")), R"({"x": 7, "y": 2, "z": 3})");
}

TEST(Yaml, TakesAQuotedMergeKeyForAPlainKey) { EXPECT_NE(parse_yaml("{'<<': {a: 1}}").find("<<"), nullptr); }

TEST(Yaml, RefusesAKeyThatIsGivenTwice) {
  EXPECT_EQ(refused("a: 1\nb: 2\na: 3\n"), "run.yaml:3:1: 'a' is given twice\n    keep one of them");
}

TEST(Yaml, RefusesASecondDocument) {
  EXPECT_EQ(refused("a: 1\n---\nb: 2\n"),
            "run.yaml:2:1: a second document begins here\n    put one document in a file; '---' separates documents");
}

TEST(Yaml, RefusesAliasesThatHoldThemselvesOrNothing) {
  EXPECT_EQ(refused("a: &x [*x]"),
            "run.yaml:1:8: *x is inside the value that it names\n    a value cannot contain itself");
  EXPECT_EQ(refused("a: *x"), "run.yaml:1:4: *x: no such anchor\n    define it above with &x");
}

TEST(Yaml, RefusesAliasesThatMultiply) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += str("a", i, ": &a", i, " [");
    for (int k = 0; k < 10; ++k) bomb += str(k ? ", " : "", "*a", i - 1);
    bomb += "]\n";
  }
  EXPECT_NE(refused(bomb).find("aliases make this document too large"), std::string::npos);
}

TEST(Yaml, RefusesNestingWithoutEnd) {
  EXPECT_EQ(refused(std::string(5000, '[')), "run.yaml:1:202: is nested more than 200 levels deep");
}

TEST(Yaml, NamesATabThatIndents) {
  EXPECT_EQ(refused("a:\n\tb: 1\n"),
            "run.yaml:2:1: is not YAML: found character that cannot start any token (while scanning for the next token "
            "that begins in line 2)\n    this is a tab; YAML uses spaces for indentation");
}

TEST(Yaml, RefusesWhatIsNotText) {
  EXPECT_EQ(refused("ab: \xff"),
            "run.yaml:1:5: is not YAML: invalid leading UTF-8 octet\n    a YAML file must be UTF-8 text");
}

TEST(Yaml, RefusesTagsThatItDoesNotKnow) {
  EXPECT_EQ(refused("a: !python/name:os.system x"),
            "run.yaml:1:4: the tag !python/name:os.system is not known\n    leave it out; known tags are !!str, !!int, "
            "!!float, !!bool and !!null");
  EXPECT_TRUE(parse_yaml("!!str 5").is_text());
}

TEST(Yaml, RefusesAKeyThatIsNotAScalar) {
  EXPECT_EQ(refused("[a]: 1"), "run.yaml:1:1: a key must be a word, not a list or a map");
}

// The places of a long line are found in one pass over it: with a pass for each, this would take minutes.
TEST(Yaml, KnowsThePlacesInALineOfManyItems) {
  constexpr size_t count = 200'000;
  std::string text = "a: [\xc3\xa9";
  for (size_t i = 1; i < count; ++i) text += ", \xc3\xa9" + std::to_string(i);
  const Value document = parse_yaml(text + "]\nb: 1\n");
  const Value& list = *document.find("a");
  ASSERT_EQ(list.items.size(), count);
  EXPECT_EQ(list.items.back().place.line, 1);
  EXPECT_EQ(list.items.back().place.column, static_cast<int>(text.rfind("\xc3") + 1));
  EXPECT_EQ(document.find("b")->place.line, 2);
}

TEST(Yaml, TakesAnEmptyFileForNull) {
  EXPECT_TRUE(parse_yaml("").is_null());
  EXPECT_TRUE(parse_yaml("# nothing\n").is_null());
}

}  // namespace
}  // namespace easydel
