#include "easydel/data/row_kinds.h"

#include <gtest/gtest.h>

namespace easydel::data {
namespace {

TEST(RowKinds, AreASetThatSaysWhichFieldsToGive) {
  constexpr RowKinds some{RowKind::messages, RowKind::preference};
  EXPECT_TRUE(some.has(RowKind::messages) && some.has(RowKind::preference));
  EXPECT_FALSE(some.has(RowKind::text) || some.has(RowKind::prompt_completion));
  EXPECT_TRUE(RowKinds().empty());
  EXPECT_EQ(fields_of({RowKind::preference}), "prompt + chosen + rejected");
  EXPECT_EQ(fields_of(some), "messages or prompt + chosen + rejected");
  EXPECT_EQ(fields_of({RowKind::text, RowKind::prompt_completion, RowKind::messages}),
            "texts, messages, or prompt + completion");
}

}  // namespace
}  // namespace easydel::data
