#include "easydel/data/example.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"

namespace easydel::data {
namespace {

using Ids = std::vector<int32_t>;

TEST(Example, LabelsAreTheNextTokensWithinTheSequence) {
  Example example;
  example.add_sequence(std::vector<int32_t>{5, 6, 7}, std::vector<uint8_t>{1, 0, 1});
  example.add_sequence(std::vector<int32_t>{8, 9});
  EXPECT_EQ(example.labels, (std::vector<int32_t>{no_label, 7, no_label, 9, no_label}));
  EXPECT_EQ(example.lengths, (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(example.labelled(), 2);
}

TEST(Example, UnshiftedLabelsAreTheTokensThemselves) {
  Example example;
  example.add_unshifted(std::vector<int32_t>{5, 6, 7}, std::vector<uint8_t>{1, 0, 1});
  EXPECT_EQ(example.tokens, (std::vector<int32_t>{5, 6, 7}));
  EXPECT_EQ(example.labels, (std::vector<int32_t>{5, no_label, 7}));
  EXPECT_EQ(example.lengths, (std::vector<int32_t>{3}));
}

TEST(Example, ColumnsAreFoundByNameAndReplaced) {
  Example example;
  example.add_sequence(Ids{4, 5, 6});
  example.add_sequence(Ids{7});
  example.set({"reward", Column::Per::example, std::vector<float>{0.5f}});
  example.set({"answer", Column::Per::sequence, std::vector<int64_t>{2, 1}});
  example.set({"logps", Column::Per::token, std::vector<float>{1, 2, 3, 4}});
  example.set({"reward", Column::Per::example, std::vector<float>{0.75f}});
  ASSERT_EQ(example.columns.size(), 3u);
  EXPECT_EQ(std::get<std::vector<float>>(example.find("reward")->values), std::vector<float>{0.75f});
  EXPECT_EQ(example.find("answer")->size(), 2u);
  EXPECT_EQ(example.find("advantage"), nullptr);
}

TEST(Example, AColumnHasANumberForEachThingThatItDescribes) {
  Example example;
  example.add_sequence(Ids{4, 5, 6});
  example.add_sequence(Ids{7});
  EXPECT_THROW(example.set({"a", Column::Per::example, std::vector<float>{1, 2}}), Bug);
  EXPECT_THROW(example.set({"a", Column::Per::sequence, std::vector<float>{1}}), Bug);
  EXPECT_THROW(example.set({"a", Column::Per::token, std::vector<float>{1, 2, 3}}), Bug);
}

}  // namespace
}  // namespace easydel::data
