#include "easydel/base/regular_expression.h"

#include <gtest/gtest.h>

namespace easydel {
namespace {

TEST(RegularExpression, MatchesTheWholeTextOrFindsAPart) {
  const RegularExpression layer("layers\\.(\\d+)|norm");
  EXPECT_TRUE(layer.matches("layers.12"));
  EXPECT_TRUE(layer.matches("norm"));
  EXPECT_FALSE(layer.matches("model.layers.12"));
  EXPECT_TRUE(layer.found_in("model.layers.12.mlp"));
  EXPECT_FALSE(layer.found_in("model.embed"));
  EXPECT_TRUE(layer.found_in(std::string_view("a norm", 6)));
  EXPECT_FALSE(layer.found_in(std::string_view("a norm", 5)));  // not beyond the view
  EXPECT_TRUE(RegularExpression("").found_in(""));
}

TEST(RegularExpression, SaysWhatEachGroupTook) {
  const RegularExpression version("(\\w+)-(\\d+)(-rc)?");
  const auto whole = version.match("torch-2");
  ASSERT_TRUE(whole);
  EXPECT_EQ(*whole, (RegularExpression::Groups{"torch-2", "torch", "2", std::nullopt}));
  EXPECT_FALSE(version.match("a torch-2"));
  const auto part = version.first_match("a torch-2-rc and arrow-26");
  ASSERT_TRUE(part);
  EXPECT_EQ(*part, (RegularExpression::Groups{"torch-2-rc", "torch", "2", "-rc"}));
  EXPECT_FALSE(version.first_match("none"));
}

TEST(RegularExpression, ReplacesEveryMatch) {
  EXPECT_EQ(RegularExpression("(\\d)x").replace("1x 2x 3", "<$1>"), "<1> <2> 3");
  EXPECT_EQ(RegularExpression("\\.").replace("a.b", "\\."), "a\\.b");
}

TEST(RegularExpression, RefusesWhatIsNone) { EXPECT_THROW(RegularExpression("(a"), InvalidRegularExpression); }

}  // namespace
}  // namespace easydel
