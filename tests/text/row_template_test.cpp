#include "easydel/text/row_template.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::text {
namespace {

Value value_of(const std::string& source, const std::string& fields) {
  return RowTemplate(source, "filter").value(parse_json(fields));
}

TEST(RowTemplate, OneExpressionKeepsItsType) {
  const std::string row = R"({"score": 4, "text": "abc", "tags": ["a", "b"], "nested": {"x": 1.5}})";
  EXPECT_EQ(*value_of("{{ score > 3 }}", row).as_bool(), true);
  EXPECT_EQ(*value_of("{{ score + 1 }}", row).as_int(), 5);
  EXPECT_EQ(*value_of("{{ nested.x * 2 }}", row).as_double(), 3.0);
  EXPECT_EQ(value_of("{{ tags }}", row), parse_json(R"(["a", "b"])"));
  EXPECT_EQ(value_of("{{ {'role': 'user', 'content': text} }}", row),
            parse_json(R"({"role": "user", "content": "abc"})"));
  EXPECT_TRUE(value_of("{{ missing }}", row).is_null());
  EXPECT_TRUE(value_of("{{ text | upper }}", row).is_text());
}

TEST(RowTemplate, EverythingElseIsAText) {
  EXPECT_EQ(value_of("Q: {{ q }}\nA:", R"({"q": 3})").scalar, "Q: 3\nA:");
  EXPECT_TRUE(value_of("{% if q %}{{ q }}{% endif %}", R"({"q": 3})").is_text());
  EXPECT_EQ(value_of("plain", "{}").scalar, "plain");
}

TEST(RowTemplate, TruthIsPythons) {
  const auto is_true = [](const std::string& source) {
    return RowTemplate(source, "filter").is_true(parse_json(R"({"text": "abc", "none": null, "zero": 0, "list": []})"));
  };
  EXPECT_TRUE(is_true("{{ text | length > 2 and zero == 0 }}"));
  for (const char* source : {"{{ none }}", "{{ zero }}", "{{ list }}", "{{ missing }}", "{{ text == 'x' }}"})
    EXPECT_FALSE(is_true(source)) << source;
}

TEST(RowTemplate, ErrorsSayWhereInTheTemplate) {
  EXPECT_EQ(test::refusal([] { value_of("{{ text | upper(", "{}"); }).substr(0, 9), "filter:1:");
  EXPECT_EQ(test::refusal([] { value_of("{{ missing.name }}", "{}"); }), "filter:1:4: 'missing' is undefined");
  EXPECT_EQ(test::refusal([] { value_of("{{ raise_exception('no') }}", "{}"); }).substr(0, 9), "filter:1:");
  EXPECT_NE(test::refusal([] {
              value_of("{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}", "{}");
            }),
            "(nothing was refused)");
}

}  // namespace
}  // namespace easydel::text
