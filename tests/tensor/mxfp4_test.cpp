#include "easydel/tensor/mxfp4.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "easydel/base/error.h"

namespace easydel::tensor {
namespace {

TEST(Mxfp4, GivesTheLowerHalfOfAByteFirst) {
  const auto bytes = at::TensorOptions().dtype(at::kByte);
  const Tensor blocks = at::zeros({1, 1, 1, 16}, bytes), scales = at::full({1, 1, 1}, 128, bytes);
  blocks.mutable_data_ptr<uint8_t>()[0] = 0x1f;   // -6, then 0.5
  blocks.mutable_data_ptr<uint8_t>()[15] = 0xa7;  // 6, then -1
  const Tensor values = mxfp4_values(blocks, scales);
  ASSERT_EQ(values.sizes(), at::IntArrayRef({1, 1, 32}));
  const auto at = [&](int64_t i) { return values[0][0][i].item<float>(); };
  EXPECT_EQ(at(0), -12.0f);
  EXPECT_EQ(at(1), 1.0f);
  EXPECT_EQ(at(2), 0.0f);
  EXPECT_EQ(at(30), 12.0f);
  EXPECT_EQ(at(31), -2.0f);
}

TEST(Mxfp4, RefusesScalesOfOtherBlocks) {
  const auto bytes = at::TensorOptions().dtype(at::kByte);
  try {
    mxfp4_values(at::zeros({2, 3, 16}, bytes), at::zeros({2, 4}, bytes));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "mxfp4: blocks [2, 3, 16] and scales [2, 4] do not belong together\n"
                 "    blocks are [..., rows, groups, 16] bytes, scales [..., rows, groups]");
  }
}

}  // namespace
}  // namespace easydel::tensor
