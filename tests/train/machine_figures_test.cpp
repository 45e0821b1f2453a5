#include "easydel/train/machine_figures.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::train {
namespace {

TEST(MachineFigures, ArePositive) {
  models::LoadOptions options;
  const auto model = models::load_model(test::test_data("models/stories260K-hf"), options);
  ASSERT_TRUE(measured_peak(*model));
  EXPECT_GT(*measured_peak(*model), 0);
  const double before = peak_memory_bytes();
  const std::string block(size_t(before) + (64u << 20), 'x');
  EXPECT_GT(peak_memory_bytes(), before + double(32u << 20)) << block.size();
}

}  // namespace
}  // namespace easydel::train
