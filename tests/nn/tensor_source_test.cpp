// Where values lie inside a file's tensor.
#include "easydel/nn/tensor_source.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

namespace easydel::nn {
namespace {

Tensor numbered(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kFloat).view(shape);
}

TEST(Sources, AreTheTensorItselfAtFirst) {
  const TensorSource source;
  const Tensor file = numbered({4, 3});
  EXPECT_EQ(source.part_of(file).const_data_ptr(), file.const_data_ptr());
  EXPECT_EQ(source.file_shape({4, 3}), (std::vector<int64_t>{4, 3}));
}

TEST(Sources, MayBeTransposed) {
  TensorSource source;
  source.transposed = true;
  EXPECT_TRUE(source.part_of(numbered({4, 3})).equal(numbered({4, 3}).t()));
  EXPECT_EQ(source.file_shape({3, 4}), (std::vector<int64_t>{4, 3}));
}

TEST(Sources, MayBeAPartOfOneDimension) {
  TensorSource source;
  source.shape = {6, 3};
  source.begin = 2, source.end = 4;
  const Tensor file = numbered({6, 3});
  EXPECT_TRUE(source.part_of(file).equal(file.slice(0, 2, 4)));
  EXPECT_EQ(source.file_shape({2, 3}), (std::vector<int64_t>{6, 3}));
  source.begin = 1, source.end = 6, source.step = 2;
  EXPECT_TRUE(source.part_of(file).equal(file.slice(0, 1, 6, 2)));
}

TEST(Sources, AreViewedAndTransposedBeforeAPartIsTaken) {
  TensorSource source;
  source.shape = {12, 2}, source.viewed = {3, 4, 2};
  source.transposed = true;
  source.dimension = 1, source.begin = 1, source.end = 2;
  const Tensor file = numbered({12, 2});
  EXPECT_TRUE(source.part_of(file).equal(file.view({3, 4, 2}).transpose(1, 2).slice(1, 1, 2)));
}

}  // namespace
}  // namespace easydel::nn
