#include "easydel/train/method.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "easydel/base/error.h"

namespace easydel::train {
namespace {

using Ids = std::vector<int32_t>;

data::Example pair(int32_t first, size_t chosen, size_t rejected) {
  data::Example out;
  out.add_sequence(Ids(chosen, first));
  out.add_sequence(Ids(rejected, first + 1));
  return out;
}

std::vector<float> floats(const Tensor& values) {
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

TEST(FlatBatch, TellsAPassWhichRowsItsHeadReads) {
  data::Example one;
  one.add_sequence(Ids{5, 6, 7, 8});
  one.labels = {data::no_label, 7, data::no_label, 9};
  const data::Example* const all[] = {&one};
  const Batch batch = flat_batch(all);
  nn::Pass pass;
  const Tensor hidden = at::arange(4, at::kFloat).view({4, 1});
  const auto [rows, labels] = labelled_rows(hidden, batch, pass);
  EXPECT_EQ(floats(rows.contiguous()), (std::vector<float>{1, 3}));
  EXPECT_TRUE(pass.stream().head_tokens.equal(at::tensor({1, 3}, at::kLong)));
}

TEST(FlatBatch, HasTheColumnsInItsOwnOrder) {
  data::Example one = pair(10, 2, 1), two = pair(20, 1, 2);
  const auto fill = [](data::Example& example, float first) {
    example.set({"reward", data::Column::Per::example, std::vector<int64_t>{static_cast<int64_t>(first)}});
    example.set({"logps", data::Column::Per::sequence, std::vector<float>{first, first + 1}});
    example.set({"weights", data::Column::Per::token, std::vector<float>{first, first + 1, first + 2}});
  };
  fill(one, 10), fill(two, 20);
  const data::Example* const all[] = {&one, &two};
  const Batch batch = flat_batch(all);
  // Chosen halves before rejected ones.
  EXPECT_EQ(batch.cu_seqlens, (std::vector<int64_t>{0, 2, 3, 4, 6}));
  EXPECT_EQ(batch.column("reward").scalar_type(), at::kLong);
  EXPECT_EQ(batch.column("reward")[1].item<int64_t>(), 20);
  EXPECT_EQ(floats(batch.column("logps")), (std::vector<float>{10, 20, 11, 21}));
  EXPECT_EQ(floats(batch.column("weights")), (std::vector<float>{10, 11, 20, 12, 21, 22}));
  EXPECT_TRUE(batch.has("logps") && !batch.has("advantages"));
  EXPECT_THROW(batch.column("advantages"), Bug);
}

TEST(FlatBatch, RefusesExamplesOfUnequalColumns) {
  data::Example one = pair(10, 2, 1), two = pair(20, 1, 2);
  one.set({"reward", data::Column::Per::example, std::vector<float>{1}});
  const data::Example* const all[] = {&one, &two};
  EXPECT_THROW(flat_batch(all), Bug);
  two.set({"reward", data::Column::Per::example, std::vector<int64_t>{1}});
  EXPECT_THROW(flat_batch(all), Bug);
}

}  // namespace
}  // namespace easydel::train
