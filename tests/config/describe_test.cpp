// Schema, page, help and default file of a table: src/easydel/config/describe.cpp.
#include <gtest/gtest.h>

#include "easydel/config/section.h"
#include "easydel/config/tables.h"

namespace easydel::config {
namespace {

struct Item {
  int64_t size = 3;
  static constexpr auto doc = "An item.";
  template <class C>
  static constexpr auto fields() {
    return std::array{field<&C::size>("Its size | area.", between(1, 9))};
  }
};

struct Page {
  double rate = 0.5;
  Item first;
  std::vector<Item> items;
  std::map<std::string, Item> named;
  std::string file;
  bool fast = true;
  static constexpr auto doc = "A page.";
  template <class C>
  static constexpr auto fields() {
    return std::array{field<&C::rate>("The rate.", above(0), alias("speed"), deprecated("velocity")),
                      field<&C::first>("The first."),
                      field<&C::items>("All.", required()),
                      field<&C::named>("By name."),
                      field<&C::file>("A file.", not_built("files")),
                      field<&C::fast>("Faster.", no_effect("it is fast"))};
  }
};

TEST(Schema, HasTypesLimitsNamesAndInnerSections) {
  const Value schema = json_schema(section_of<Page>());
  const Value& properties = *schema.find("properties");
  const char* const rate = R"({"type": "number", "exclusiveMinimum": 0, "default": 0.5, "description": "The rate. )"
                           R"(Also `speed`. Old name: `velocity`."})";
  EXPECT_EQ(to_json(*properties.find("rate")), rate);
  EXPECT_EQ(to_json(*properties.find("speed")), rate);
  EXPECT_EQ(properties.find("velocity")->find("deprecated")->as_bool(), true);
  EXPECT_EQ(to_json(*properties.find("first")->find("properties")->find("size")->find("maximum")), "9");
  EXPECT_EQ(properties.find("items")->find("type")->scalar, "array");
  EXPECT_EQ(properties.find("named")->find("additionalProperties")->find("description")->scalar, "An item.");
  EXPECT_EQ(to_json(*schema.find("required")), R"(["items"])");
  EXPECT_EQ(schema.find("additionalProperties")->as_bool(), false);
}

TEST(Schema, OfVariantsAcceptsAKeyAsAnyOfThemKnowsIt) {
  Section section{.doc = "Either."}, one{.doc = ""}, other{.doc = ""};
  const Key size = section_of<Item>().keys[0];
  one.keys = {size};
  other.keys = {size};
  other.keys[0].schema = detail::schema_type("string");
  section.variants = {{"one", &one}, {"other", &other}, {"again", &one}};
  const Value schema = json_schema(section);
  const Value& either = *schema.find("properties")->find("size")->find("anyOf");
  ASSERT_EQ(either.items.size(), 2u);
  EXPECT_EQ(either.items[0].find("type")->scalar, "integer");
  EXPECT_EQ(either.items[1].find("type")->scalar, "string");
}

TEST(Markdown, HasATableForEachSection) {
  EXPECT_EQ(markdown(section_of<Page>(), "page"),
            "## page\n\nA page.\n\n| key | default | expects | meaning |\n|---|---|---|---|\n"
            "| `rate` | `0.5` | a number above 0 | The rate. Also `speed`. Old name: `velocity`. |\n"
            "| `file` | `\"\"` | a string | A file. *Not built yet: files.* |\n"
            "| `fast` | `true` | true or false | Faster. *Has no effect here: it is fast.* |\n\n"
            "## page.first\n\nThe first.\n\nAn item.\n\n| key | default | expects | meaning |\n|---|---|---|---|\n"
            "| `size` | `3` | an integer from 1 to 9 | Its size \\| area. |\n\n"
            "## page.items[]\n\nAll.\n\nAn item.\n\n| key | default | expects | meaning |\n|---|---|---|---|\n"
            "| `size` | `3` | an integer from 1 to 9 | Its size \\| area. |\n\n"
            "## page.named.*\n\nBy name.\n\nAn item.\n\n| key | default | expects | meaning |\n|---|---|---|---|\n"
            "| `size` | `3` | an integer from 1 to 9 | Its size \\| area. |\n\n");
}

TEST(Help, IsALineForEachKey) {
  const std::string text = help(section_of<Page>(), "page");
  EXPECT_TRUE(text.starts_with("  page.rate: 0.5                            The rate. Also `speed`.")) << text;
  EXPECT_NE(text.find("\n  page.items[].size: 3"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  page.named.*.size: 3"), std::string::npos) << text;
}

TEST(DefaultYaml, IsReadBackAsTheDefaults) {
  EXPECT_EQ(default_yaml(section_of<Page>()),
            "rate: 0.5  # The rate.\nfirst:\n  size: 3  # Its size | area.\nitems: []  # All.\nnamed: {}  # By name.\n"
            "file: \"\"  # A file.\nfast: true  # Faster.\n");
}

}  // namespace
}  // namespace easydel::config
