#include "easydel/config/tables.h"

#include <gtest/gtest.h>

#include <limits>

namespace easydel::config {
namespace {

TEST(Limits, HoldForNumbersAndWhatIsInside) {
  using detail::outside;
  EXPECT_FALSE(outside(int64_t{1}, between(1, 3)));
  EXPECT_FALSE(outside(int64_t{3}, between(1, 3)));
  EXPECT_TRUE(outside(int64_t{4}, between(1, 3)));
  EXPECT_TRUE(outside(0.0, above(0)));
  EXPECT_FALSE(outside(0.0, at_least(0)));
  EXPECT_TRUE(outside(std::numeric_limits<double>::quiet_NaN(), at_least(0)));
  EXPECT_TRUE(outside(std::numeric_limits<double>::quiet_NaN(), between(0, 1)));
  EXPECT_TRUE(outside(std::optional<int64_t>(0), at_least(1)));
  EXPECT_FALSE(outside(std::optional<int64_t>(), at_least(1)));
  EXPECT_TRUE(outside(std::vector<int64_t>{1, 0}, at_least(1)));
  EXPECT_TRUE(outside(Auto<int64_t>{0}, at_least(1)));
  EXPECT_FALSE(outside(false, at_least(1)));
  EXPECT_FALSE(outside(std::string("0"), at_least(1)));
}

TEST(Limits, AreDescribedAfterTheNumber) {
  using detail::expects_with;
  EXPECT_EQ(expects_with("an integer, or null", between(1, 256)), "an integer from 1 to 256, or null");
  EXPECT_EQ(expects_with("auto, or a number", above(0.5)), "auto, or a number above 0.5");
  EXPECT_EQ(expects_with("a number", at_least(0)), "a number of at least 0");
  EXPECT_EQ(expects_with("a number", {}), "a number");
}

TEST(Limits, AreInTheSchemaOfTheNumber) {
  EXPECT_EQ(to_json(detail::schema_with(Codec<std::optional<int64_t>>::schema(), between(1, 2))),
            R"({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 2}, {"type": "null"}]})");
  EXPECT_EQ(to_json(detail::schema_with(Codec<std::vector<double>>::schema(), above(0))),
            R"({"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}})");
}

enum class Kind { plain, fancy };
constexpr auto choices(Kind) { return std::array{Choice{Kind::plain, "plain"}, Choice{Kind::fancy, "fancy"}}; }

struct Settings {
  int64_t for_each = 4;
  std::optional<double> share;
  Kind kind = Kind::fancy;
  static constexpr auto doc = "Settings.";
  template <class C>
  static constexpr auto fields() {
    return std::array{field<&C::for_each>("A count.", at_least(1), named("for")),
                      field<&C::share>("A share.", between(0, 1)), field<&C::kind>("A kind.")};
  }
};

TEST(Table, HasTheMembersNamesTypesAndDefaults) {
  const Section& section = section_of<Settings>();
  EXPECT_EQ(section.doc, "Settings.");
  ASSERT_EQ(section.keys.size(), 3u);
  EXPECT_EQ(section.keys[0].name, "for");
  EXPECT_EQ(section.keys[0].expects, "an integer of at least 1");
  EXPECT_EQ(to_yaml_flow(section.keys[0].default_value), "4");
  EXPECT_EQ(section.keys[1].name, "share");
  EXPECT_EQ(section.keys[1].expects, "a number from 0 to 1, or null");
  EXPECT_EQ(to_yaml_flow(section.keys[2].default_value), "fancy");
}

TEST(Table, KeepsTheDefaultOfAnEmptyKeyThatCannotBeNull) {
  Settings out;
  const Problems problems = read(parse_yaml("{for: null, share: null}"), out, "f");
  EXPECT_TRUE(problems.empty()) << problems.text();
  EXPECT_EQ(out.for_each, 4);
  EXPECT_EQ(problems.notes(), std::vector<std::string>{"f:1:7: for: is empty; its default 4 is used"});
}

TEST(Table, RefusesValuesOutOfRange) {
  Settings out;
  EXPECT_EQ(read(parse_yaml("{for: 0, share: 1.5}"), out, "f").text(),
            "f:1:7: for: 0 is out of range\n    expected an integer of at least 1 (default 4)\n"
            "f:1:17: share: 1.5 is out of range\n    expected a number from 0 to 1, or null (default null)\n"
            "2 problems in f; nothing was run.");
}

}  // namespace
}  // namespace easydel::config
