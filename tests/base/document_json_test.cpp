#include <gtest/gtest.h>

#include <cmath>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

std::string refused(std::string_view text) {
  return test::refusal([&] { parse_json(text, "a.json"); });
}

TEST(Json, KeepsEveryDigitAndThePlaces) {
  const Value root = parse_json("{\"a\": [1, 2.50, -3e10],\n \"b\": \"x\\u00e9\\n\", \"c\": 12345678901234567890}");
  EXPECT_EQ(root.find("a")->items.at(1).scalar, "2.50");
  EXPECT_EQ(root.find("c")->scalar, "12345678901234567890");
  EXPECT_EQ(root.find("b")->scalar, "x\xc3\xa9\n");
  EXPECT_EQ(root.find("b")->place.line, 2);
  EXPECT_EQ(root.key_places.at(1).column, 2);
}

TEST(Json, ReadsNaNAndInfinityAsPythonWritesThem) {
  const Value root = parse_json("[NaN, Infinity, -Infinity]");
  EXPECT_TRUE(std::isnan(*root.items.at(0).as_double()));
  EXPECT_EQ(to_json(root), "[NaN, Infinity, -Infinity]");
  EXPECT_TRUE(std::isnan(*parse_json(" NaN ").as_double()));
}

TEST(Json, ReadsADocumentThatIsOneScalar) {
  EXPECT_EQ(parse_json("3").as_int(), 3);
  EXPECT_EQ(parse_json(" \"a b\" ").scalar, "a b");
  EXPECT_TRUE(parse_json("null").is_null());
}

TEST(Json, RefusesWhatPythonRefuses) {
  for (const char* text :
       {"3 4",          "\"a\" 1",       "[1 2]",     "[1,]",    "[1,,2]",   "[,]",       "{\"a\" 1}",
        "{\"a\":1,}",   "{,}",           "{a:1}",     "{'a':1}", "{\"a\":}", "{1:2}",     "[1] 2",
        "[1",           "[1}",           "{\"a\":1]", "]",       "}",        "[01]",      "[1.]",
        "[.5]",         "[+1]",          "[--1]",     "[1e]",    "[tru]",    "[nan]",     "nul",
        "[\"\\x\"]",    "[\"\t\"]",      "\"abc",     "[1:2]",   "// c\n1",  "",          "  ",
        "[\"a\"\"b\"]", "[\"a\" \"b\"]", "[NaN1]",    "[-NaN]",  "[True]",   "[\"\xff\"]"})
    EXPECT_NE(refused(text), "(nothing was refused)") << text;
}

TEST(Json, SaysWhereItStopsBeingJson) {
  EXPECT_EQ(refused("{\"a\": 1,\n \"b\": tru}"), "a.json:2:7: is not JSON: 'tru'\n    strings need double quotes");
  EXPECT_EQ(refused("{\"a\": 1, \"\\x\": 2}"), "a.json:1:10: is not JSON: a string contains an invalid escape");
  EXPECT_EQ(refused("[1] 2"), "a.json:1:5: there is more text after the end of the document");
  EXPECT_EQ(refused("{\"a\": 1, \"a\": 2}"), "a.json:1:10: 'a' is given twice\n    keep one of them");
  EXPECT_EQ(refused(""), "a.json:1:1: is empty");
}

TEST(Json, RefusesNestingWithoutEnd) {
  EXPECT_EQ(refused(std::string(300, '[') + std::string(300, ']')),
            "a.json:1:202: is nested more than 200 levels deep");
}

TEST(Documents, AreReadByTheirExtension) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a.json", "{\"a\": 1}");
  test::write_file(folder / "a.yaml", "a: 1");
  EXPECT_EQ(parse_file(folder / "a.json"), parse_file(folder / "a.yaml"));
  const std::string missing = (folder / "b.yaml").string();
  EXPECT_EQ(test::refusal([&] { parse_file(missing); }), missing + ": no such file");
}

TEST(Documents, ComeBackTheSameFromYamlAndJson) {
  const Value value = parse_yaml(
      "a: {b: 1e-5, c: 'yes', d: '5', e: ~, f: [], g: {}}\nl: [1, [2, 3], {x: y}, 'a: b', '# no', \"a\\nb\\t\\x01\"]\n"
      "paths: [./x, ../y, /z, 'C:\\q', '*a', 'null', '', ' s ', '-', '?', 0.5, .5, '1e5', true, 'True', ~]\n");
  EXPECT_EQ(parse_yaml(to_yaml(value)), value) << to_yaml(value);
  EXPECT_EQ(parse_yaml(to_yaml_flow(value)), value) << to_yaml_flow(value);
  EXPECT_EQ(parse_json(to_json(value)), value);
  EXPECT_EQ(parse_json(to_json(value, 2)), value);
}

TEST(Documents, KeepCharactersThatReadersDropOrBreakLinesAt) {
  const Value value = Value::text("\xef\xbb\xbf a\xc2\x85 b\xe2\x80\xa8 c\x7f\x01" + std::string(1, '\0'));
  EXPECT_EQ(to_yaml(value), "\"\\ufeff a\\u0085 b\\u2028 c\\u007f\\u0001\\u0000\"\n");
  EXPECT_EQ(parse_yaml(to_yaml(value)), value);
  EXPECT_EQ(parse_json(to_json(value)), value);
}

TEST(Documents, AreWrittenForReadersOfYaml11Too) {
  // PyYAML reads 1e-5 as a string and yes as a boolean.
  EXPECT_EQ(to_yaml(parse_yaml("{rate: 1e-5, word: 'yes', version: '1.0'}")),
            "rate: 1.0e-5\nword: \"yes\"\nversion: \"1.0\"\n");
}

TEST(Documents, WriteNumbersInTheirShortestForm) {
  for (const double number : {0.1, 1e-5, 2.0, 1e300, -0.0, 123456789.0})
    EXPECT_EQ(Value::number(number).as_double(), number);
  EXPECT_EQ(Value::number(2).scalar, "2.0");
  EXPECT_EQ(Value::number(5e-5).scalar, "5e-05");
}

}  // namespace
}  // namespace easydel
