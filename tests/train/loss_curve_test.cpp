#include <gtest/gtest.h>

#include <algorithm>

#include "support/data.h"
#include "train/reports.h"

namespace easydel::train {
namespace {

using test::report;

// The points of a curve: pairs of numbers in a polyline.
size_t points(const std::string& svg, const std::string& colour) {
  const size_t begin = svg.find("stroke=\"" + colour + "\""), from = svg.find("points=\"", begin) + 8;
  const std::string list = svg.substr(from, svg.find('"', from) - from);
  return static_cast<size_t>(std::count(list.begin(), list.end(), ','));
}

TEST(LossCurve, DrawsTrainingAndEvaluation) {
  const test::TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  {
    Records records(file, 0);
    for (int step = 1; step <= 3; ++step) records.add(as_record(report(step, 5 - step), "mine"));
    EvaluationReport held_out;
    held_out.step = 3, held_out.loss = 2.5;
    records.add(as_record(held_out, "mine"));
  }
  const std::string svg = loss_curve(file, "a <b>", "mine");
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_NE(svg.find("a &lt;b&gt;"), std::string::npos);
  EXPECT_NE(svg.find(">evaluation<"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(points(svg, "#3b82c4"), 3u);
  EXPECT_EQ(points(svg, "#d9822b"), 1u);
}

TEST(AllCurves, HasAPanelForEveryNumber) {
  const test::TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  {
    Records records(file, 0);
    for (int step = 1; step <= 3; ++step) {
      StepReport one = report(step, 5 - step);
      one.metrics = {{"rewards/margins", 0.1 * step}};
      records.add(as_record(one, ""));
    }
  }
  const std::string svg = all_curves(file, "run", "");
  for (const char* name : {">loss<", ">learning_rate<", ">rewards/margins<"})
    EXPECT_NE(svg.find(name), std::string::npos) << name;
  EXPECT_EQ(svg.find(">step</text>\n<polyline"), svg.find(">step</text>"));
}

TEST(LossCurve, LeavesOutLossesThatAreNotFinite) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "metrics.jsonl",
                   "{\"step\": 1, \"loss\": 2.0}\n{\"step\": 2, \"loss\": null}\n{\"step\": 3, \"loss\": 1.5}\n");
  const std::string svg = loss_curve(folder / "metrics.jsonl", "run", "");
  EXPECT_EQ(points(svg, "#3b82c4"), 2u);
  EXPECT_EQ(svg.find(">evaluation<"), std::string::npos);
}

}  // namespace
}  // namespace easydel::train
