#include "easydel/tensor/random.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

namespace easydel::tensor {
namespace {

// Known answers of the authors' Random123 library.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0}, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff}, ~0ull, ~0ull),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(FillNormal, GivesASliceTheElementsOfTheWhole) {
  const Key key = key_of(7, "initial/x");
  const Tensor whole = at::empty({6, 10}, at::kFloat), part = at::empty({3, 5}, at::kFloat);
  fill_normal(whole, key, 0.5, {6, 10}, {0, 0});
  fill_normal(part, key, 0.5, {6, 10}, {2, 3});
  EXPECT_TRUE(part.equal(whole.slice(0, 2, 5).slice(1, 3, 8)));
}

TEST(FillNormal, HasTheDeviationThatIsAskedFor) {
  const Tensor x = at::empty({200, 200}, at::kFloat);
  fill_normal(x, key_of(1, "y"), 0.02, {200, 200}, {0, 0});
  EXPECT_NEAR(x.mean().item<double>(), 0.0, 0.0005);
  EXPECT_NEAR(x.std().item<double>(), 0.02, 0.0005);
}

}  // namespace
}  // namespace easydel::tensor
