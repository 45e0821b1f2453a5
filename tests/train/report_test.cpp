#include "easydel/train/report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/data.h"
#include "train/reports.h"

namespace easydel::train {
namespace {

using test::report;

TEST(Records, GoingOnDropsWhatComesAfterTheCheckpointAndWhatACrashCutOff) {
  const test::TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  {
    Records records(file, 0);
    for (int step = 1; step <= 4; ++step) records.add(as_record(report(step, 5 - step), ""));
  }
  test::write_file(file, test::read_file(file) + "{\"step\": 5, \"lo");
  { Records records(file, 2); }
  const std::string text = test::read_file(file);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text.find("\"step\":3"), std::string::npos);
  { Records fresh(file, 0); }
  EXPECT_EQ(test::read_file(file), "");
}

}  // namespace
}  // namespace easydel::train
