#include "easydel/data/row_schema.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::data {
namespace {

std::string features(const std::string& rows, std::vector<std::string> images = {}) {
  RowSchema schema(std::move(images));
  for (const Value& row : parse_json(rows).items) schema.add(row, "rows.jsonl:1");
  return test::replaced(to_json(schema.features()), R"(, "_type": "Value"})", "}");
}

TEST(RowSchema, FindsTheTypesOfColumns) {
  EXPECT_EQ(features(R"([{"t": "a", "i": 1, "f": 1.5, "b": true, "n": null}, {"t": null, "later": 3}])"),
            R"({"t": {"dtype": "string"}, "i": {"dtype": "int64"}, "f": {"dtype": "float64"}, )"
            R"("b": {"dtype": "bool"}, "n": {"dtype": "null"}, "later": {"dtype": "int64"}})");
  EXPECT_EQ(features(R"([{"x": null}, {"x": 2}])"), R"({"x": {"dtype": "int64"}})");
}

TEST(RowSchema, IntegersAndNumbersOfAColumnAreNumbers) {
  EXPECT_EQ(features(R"([{"x": 1}, {"x": 2.0}])"), R"({"x": {"dtype": "float64"}})");
  EXPECT_EQ(features(R"([{"x": 1e3}, {"x": 2}])"), R"({"x": {"dtype": "float64"}})");
  // A template would show 1 and 1.0 differently, so inside of others they stay what they are.
  EXPECT_EQ(features(R"([{"x": [1]}, {"x": [2.0]}])"), R"({"x": {"feature": {"_type": "Json"}, "_type": "Sequence"}})");
}

TEST(RowSchema, WhatVariesIsJson) {
  const std::string json = R"({"x": {"_type": "Json"}})";
  EXPECT_EQ(features(R"([{"x": "a"}, {"x": 1}])"), json);
  EXPECT_EQ(features(R"([{"x": true}, {"x": 1}])"), json);
  EXPECT_EQ(features(R"([{"x": {"a": 1}}, {"x": {"b": 1}}])"), json);
  EXPECT_EQ(features(R"([{"x": {"a": 1}}, {"x": {"a": 1, "b": 1}}])"), json);
  EXPECT_EQ(features(R"([{"x": {}}])"), json);
  EXPECT_EQ(features(R"([{"x": 12345678901234567890123}])"), json);
  EXPECT_EQ(features(R"([{"x": 1}, {"x": "a"}, {"x": 1}])"), json);
}

TEST(RowSchema, ListsAndMapsHaveTypesOfTheirOwn) {
  EXPECT_EQ(features(R"([{"x": []}, {"x": [1, null]}])"),
            R"({"x": {"feature": {"dtype": "int64"}, "_type": "Sequence"}})");
  EXPECT_EQ(features(R"([{"x": []}])"), R"({"x": {"feature": {"dtype": "null"}, "_type": "Sequence"}})");
  EXPECT_EQ(features(R"([{"m": [{"role": "user", "content": "a"}]}, {"m": [{"content": "b", "role": null}]}])"),
            R"({"m": [{"role": {"dtype": "string"}, "content": {"dtype": "string"}}]})");
  EXPECT_EQ(features(R"([{"m": [{"a": {"b": 1, "c": "d"}}, {"a": {"b": 2, "c": null}}]}])"),
            R"({"m": [{"a": {"b": {"dtype": "int64"}, "c": {"dtype": "string"}}}]})");
  EXPECT_EQ(features(R"([{"m": [{"role": "user"}, {"role": "tool", "name": "f"}]}])"),
            R"({"m": {"feature": {"_type": "Json"}, "_type": "Sequence"}})");
}

TEST(RowSchema, NamesImages) {
  const char* const one = R"([{"image": {"bytes": "x", "path": null}}, {"image": null}])";
  EXPECT_EQ(features(one, {"image"}), R"({"image": {"_type": "Image"}})");
  EXPECT_EQ(features(R"([{"image": [{"bytes": "x", "path": null}]}])", {"image"}),
            R"({"image": {"feature": {"_type": "Image"}, "_type": "Sequence"}})");
  const char* const both = R"([{"image": {"bytes": "x", "path": null}}, {"image": []}])";
  EXPECT_EQ(test::refusal([&] { features(both, {"image"}); }),
            "rows.jsonl:1: field 'image' is one image in some rows and a list of images in others\n"
            "    give lists in all rows");
}

}  // namespace
}  // namespace easydel::data
