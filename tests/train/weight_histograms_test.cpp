#include "easydel/train/weight_histograms.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "easydel/base/files.h"
#include "easydel/kernels/executor.h"
#include "easydel/tensor/executor.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

TEST(WeightHistograms, CountEveryValueOnce) {
  const Histogram made = histogram_of(at::tensor({-1.0f, 0.0f, 0.01f, 0.5f, 1.0f, 1.0f, std::nanf("")}));
  EXPECT_EQ(made.values, 6);
  EXPECT_EQ(made.min, -1);
  EXPECT_EQ(made.max, 1);
  EXPECT_NEAR(made.sum, 1.51, 1e-7);
  EXPECT_NEAR(made.sum_of_squares, 3.2501, 1e-7);
  ASSERT_EQ(made.limits.size(), 64u);
  EXPECT_EQ(made.limits[31], 0);
  EXPECT_EQ(std::accumulate(made.counts.begin(), made.counts.end(), int64_t{0}), 6);
  EXPECT_EQ(made.counts[0], 1);
  EXPECT_EQ(made.counts[31], 1) << "a value on a limit is below it";
  EXPECT_EQ(made.counts[32], 1);
  EXPECT_EQ(made.counts[47], 1);
  EXPECT_EQ(made.counts[63], 2);
}

TEST(WeightHistograms, OfOneValueAndOfNone) {
  const Histogram one = histogram_of(at::tensor({2.0f, 2.0f}));
  EXPECT_EQ(one.counts.at(0), 2);
  EXPECT_EQ(one.limits.at(0), 2);
  EXPECT_EQ(histogram_of(at::tensor({std::nanf("")})).values, 0);
}

// Several tasks read such a tensor; what they find does not depend on how many run at once.
TEST(WeightHistograms, OfManyValuesAreThoseOfAnyNumberOfThreads) {
  std::vector<float> values(200001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(float(i)) * float(i % 977);
  values[7] = INFINITY, values[70000] = std::nanf(""), values.back() = -2000;
  const Tensor tensor = at::tensor(values);
  const auto made = [&](int threads) {
    const auto pool = kernels::make_pool(threads);
    const tensor::UseExecutor here(*pool);
    return histogram_of(tensor);
  };
  const Histogram one = made(1), three = made(3);
  EXPECT_EQ(one.values, 199999);
  EXPECT_EQ(one.min, -2000);
  double sum = 0;
  std::vector<int64_t> counts(64);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++counts[size_t(std::ranges::lower_bound(one.limits, double(value)) - one.limits.begin())];
  }
  EXPECT_NEAR(one.sum, sum, 1e-6 * std::abs(sum));
  EXPECT_EQ(one.counts, counts);
  EXPECT_EQ(one.sum, three.sum);
  EXPECT_EQ(one.sum_of_squares, three.sum_of_squares);
  EXPECT_EQ(one.counts, three.counts);
}

// The bytes that tensorboard's HistogramProto has for these numbers.
TEST(WeightHistograms, AreEventsOfTensorboard) {
  const test::TemporaryFolder folder;
  EventFile(folder.path(), 0).add_histogram(3, "w", {1, 2, 3.5, 6.25, 2, {1.5, 2}, {1, 1}});
  const std::string bytes = test::read_file(folder / "events.out.tfevents.0.easydel");
  const auto number = [](double value) {
    std::string out(8, 0);
    std::memcpy(out.data(), &value, 8);
    return out;
  };
  const std::string proto = "\x09" + number(1) + "\x11" + number(2) + "\x19" + number(2) + "\x21" + number(3.5) +
                            "\x29" + number(6.25) + "\x32\x10" + number(1.5) + number(2) + "\x3a\x10" + number(1) +
                            number(1);
  EXPECT_NE(bytes.find(std::string("\x10\x03\x2a\x58\x0a\x56\x0a\x01w\x2a\x51") + proto), std::string::npos);
}

TEST(WeightHistograms, AreWrittenForTrainedParametersThatThePatternFinds) {
  const test::TemporaryFolder folder;
  const test::LogLines log;
  Trainer(
      test::small_run(folder.path(),
                      "{max_training_steps: 5, do_last_save: false, frozen_layers: [0], weight_distribution_pattern: "
                      "\"q_proj\", weight_distribution_log_steps: 2}"))
      .run();
  const std::string bytes = test::read_file(folder / "out" / "small" / "events.out.tfevents.0.easydel");
  const auto count = [&](const std::string& text) {
    size_t found = 0;
    for (size_t at = bytes.find(text); at != std::string::npos; at = bytes.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("weights/model.layers.1.self_attn.q_proj.weight"), 3u) << "after steps 2, 4 and the last one";
  EXPECT_EQ(count("weights/model.layers.0.self_attn.q_proj.weight"), 0u);
  EXPECT_EQ(count("k_proj"), 0u);
}

}  // namespace
}  // namespace easydel::train
