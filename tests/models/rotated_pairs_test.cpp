// Which odd numbers of rotated dimensions are rounded up, and which are refused.
#include "easydel/models/rotated_pairs.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::models {
namespace {

const Value kNone = Value::map();
const ConfigReader kConfig(kNone, FilePlace{"config"});

ops::RopeSpec turning(ops::RopeType type, int64_t dim) {
  ops::RopeSpec rope;
  rope.type = type;
  rope.dim = dim;
  return rope;
}

std::string refusal(int64_t dim) {
  return str("config: head_dim: ", dim, " rotated dimensions; rotary positions need an even number");
}

TEST(RotatedPairs, AnOddNumberIsRoundedUpWhereTransformersComputesWithIt) {
  using ops::RopeType;
  for (const auto& [type, dim] : {std::pair(RopeType::standard, 3), std::pair(RopeType::linear, 1),
                                  std::pair(RopeType::yarn, 3), std::pair(RopeType::longrope, 12)})
    check_rotated_pairs(kConfig, turning(type, dim), 12);
  for (const auto& [type, dim] :
       {std::pair(RopeType::yarn, 5), std::pair(RopeType::longrope, 3), std::pair(RopeType::standard, 13)}) {
    const auto wrong = [&] { check_rotated_pairs(kConfig, turning(type, dim), 12); };
    EXPECT_EQ(test::refusal(wrong), refusal(dim));
  }
}

TEST(RotatedPairs, ClassesThatSplitAHeadByTheNumberNeedAnEvenOneOrOneAlone) {
  const auto settled = [](ops::RopeType type, int64_t dim) {
    ops::RopeSpec rope = turning(type, dim);
    settle_odd_rotation(kConfig, rope);
    return rope.angles == 1;
  };
  EXPECT_FALSE(settled(ops::RopeType::standard, 6));
  EXPECT_TRUE(settled(ops::RopeType::llama3, 1));
  EXPECT_EQ(test::refusal([&] { settled(ops::RopeType::standard, 3); }), refusal(3));
  EXPECT_EQ(test::refusal([&] { settled(ops::RopeType::yarn, 1); }), refusal(1));
}

TEST(RotatedPairs, AWholeHeadOfAnOddNumberIsRefusedWhicheverWayItsParametersAreRead) {
  const RopeDefaults defaults;
  EXPECT_EQ(test::refusal([&] { kConfig.rope(5, 64, defaults); }), refusal(5));
  EXPECT_EQ(test::refusal([&] { kConfig.rope_of("full_attention", 5, 64, 10000.0); }), refusal(5));
  EXPECT_TRUE(kConfig.rope(1, 64, defaults).angles == 1);
}

}  // namespace
}  // namespace easydel::models
