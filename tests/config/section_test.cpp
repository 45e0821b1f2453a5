#include "easydel/config/section.h"

#include <gtest/gtest.h>

#include "easydel/config/tables.h"

namespace easydel::config {
namespace {

struct Inner {
  int64_t low = 1, high = 2;
  static constexpr auto doc = "A range.";
  template <class C>
  static constexpr auto fields() {
    return std::array{field<&C::low>("Its begin."), field<&C::high>("Its end.", alias("top"))};
  }
  void settle(Keys& keys) {
    if (low > high) keys.refuse("low", "is above high");
  }
};

struct Outer {
  std::string name;
  Inner range;
  std::map<std::string, Inner> ranges;
  std::vector<Inner> list;
  static constexpr auto doc = "Ranges.";
  template <class C>
  static constexpr auto fields() {
    return std::array{field<&C::name>("Its name.", required(), deprecated("title")), field<&C::range>("A range."),
                      field<&C::ranges>("Ranges by name."), field<&C::list>("More ranges.")};
  }
};

struct Guest {
  std::string name = "nobody";
  bool invited = false;
  static constexpr auto doc = "A guest.";
  static constexpr bool open = true;
  template <class C>
  static constexpr auto fields() {
    return std::array{field<&C::name>("Another name."), field<&C::invited>("A flag.")};
  }
};

std::string text_of(const char* document) {
  Outer out;
  Problems problems("f");
  read_section(section_of<Outer>(), parse_yaml(document), &out, "", problems);
  return problems.empty() ? to_yaml_flow(write_section(section_of<Outer>(), &out)) : problems.text();
}

std::string one(const std::string& problem) { return problem + "\n1 problem in f; nothing was run."; }

TEST(Section, IsReadWithEveryKindOfInnerSection) {
  EXPECT_EQ(text_of("{name: x, range: {low: 0}, ranges: {a: {top: 5}}, list: [{}]}"),
            "{name: x, range: {low: 0, high: 2}, ranges: {a: {low: 1, high: 5}}, list: [{low: 1, high: 2}]}");
  EXPECT_EQ(text_of("name: x\nrange:"), "{name: x, range: {low: 1, high: 2}, ranges: {}, list: []}");
}

TEST(Section, ChecksRulesOverSeveralKeysAtEveryLevel) {
  EXPECT_EQ(text_of("{name: x, list: [{low: 3}]}"), one("f:1:24: list[0].low: is above high"));
  EXPECT_EQ(text_of("{name: x, ranges: {a: {low: 3}}}"), one("f:1:29: ranges.a.low: is above high"));
}

TEST(Section, LeavesRulesOutWhereAKeyIsWrong) {
  EXPECT_EQ(text_of("{name: x, range: {low: 3, high: x}}"),
            one("f:1:33: range.high: 'x' is not an integer\n    expected an integer (default 2)"));
}

TEST(Section, RefusesWhatIsMissingUnknownOrNoSection) {
  EXPECT_EQ(text_of("{}"), one("f:1:1: name: is missing\n    expected a string"));
  EXPECT_EQ(text_of("{name: x, range: {lo: 1}}"), one("f:1:19: range.lo: no such key\n    did you mean 'low'?"));
  EXPECT_EQ(text_of("{name: x, low: 1}"), one("f:1:11: low: no such key\n    did you mean 'range.low'?"));
  EXPECT_EQ(text_of("{name: x, range: 3}"),
            one("f:1:18: range: is not a section\n    expected keys below it, one per line: 'key: value'"));
  EXPECT_EQ(text_of("{name: x, title: m}"),
            one("f:1:11: name: is given twice, as 'name' and as 'title'\n    they are the same key; keep one of them"));
}

TEST(Sections, ShareTheirKeys) {
  Outer outer;
  Guest guest;
  Problems problems("f");
  const std::array parts{part(outer), part(guest)};
  read_sections(parts, parse_yaml("{name: both, invited: true, other: 1}"), "", problems);
  EXPECT_TRUE(problems.empty()) << problems.text();
  EXPECT_EQ(outer.name, "both");
  EXPECT_EQ(guest.name, "both");
  EXPECT_TRUE(guest.invited);
  EXPECT_EQ(to_yaml_flow(write_sections(parts)),
            "{name: both, range: {low: 1, high: 2}, ranges: {}, list: [], invited: true}");
}

TEST(Sections, AreMergedUnderTheFirstDescription) {
  const std::array<const Section*, 2> sections{&section_of<Guest>(), &section_of<Outer>()};
  const Section both = merged("Both.", sections);
  EXPECT_EQ(both.doc, "Both.");
  ASSERT_EQ(both.keys.size(), 5u);
  EXPECT_EQ(both.keys[0].doc, "Another name.");
}

TEST(Section, FindsKeysByPath) {
  const Section& root = section_of<Outer>();
  EXPECT_EQ(find_key(root, "title")->name, "name");
  EXPECT_EQ(find_key(root, "range.top")->name, "high");
  EXPECT_EQ(find_key(root, "ranges.any.low")->name, "low");
  EXPECT_EQ(find_key(root, "ranges.any")->name, "ranges");
  EXPECT_EQ(find_key(root, "list[3].low")->name, "low");
  EXPECT_EQ(find_key(root, "list.low")->name, "low");
  EXPECT_EQ(find_key(root, "range.low.more"), nullptr);
  EXPECT_EQ(find_key(root, "nothing"), nullptr);
}

TEST(Section, FindsKeysOfItsVariants) {
  Section section{.doc = "Either."};
  section.variants.push_back({"guest", &section_of<Guest>()});
  EXPECT_EQ(find_key(section, "invited")->name, "invited");
  EXPECT_EQ(find_key(section, "range"), nullptr);
}

TEST(Differences, AreTheKeysWithOtherValues) {
  const Value defaults = parse_yaml("{a: 1, b: {c: 2, d: 3}, e: [1]}");
  EXPECT_EQ(to_yaml_flow(differences(parse_yaml("{a: 1, b: {c: 2, d: 4}, e: [1, 2], f: 5}"), defaults)),
            "{b: {d: 4}, e: [1, 2], f: 5}");
  EXPECT_EQ(to_yaml_flow(differences(defaults, defaults)), "{}");
}

}  // namespace
}  // namespace easydel::config
