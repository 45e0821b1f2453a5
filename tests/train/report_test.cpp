#include "easydel/train/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "easydel/base/files.h"
#include "easydel/train/progress.h"
#include "support/data.h"

namespace easydel::train {
namespace {

StepReport report(int64_t step, double loss) {
  StepReport out;
  out.step = step, out.steps = 8, out.epoch = static_cast<double>(step) / 4;
  out.loss = loss, out.learning_rate = 1e-3, out.gradient_norm = 2.5;
  out.tokens_per_second = 12345, out.seconds_left = 75;
  out.teraflops = 0.25, out.share_of_peak = 0.5;
  out.metrics = {{"entropy", 1.5}};
  out.logged = true;
  return out;
}

std::string written(ProgressBar kind, const std::function<void(Watcher&)>& use) {
  std::FILE* file = std::tmpfile();
  use(*make_progress(kind, file));
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST(Progress, IsPlainLinesWhereThereIsNoTerminal) {
  EXPECT_EQ(written(ProgressBar::tqdm,
                    [](Watcher& watcher) {
                      watcher.stepped(report(2, 3.25));
                      StepReport quiet = report(3, 3);
                      quiet.logged = false;
                      watcher.stepped(quiet);
                      EvaluationReport held_out;
                      held_out.step = 4, held_out.loss = 1, held_out.tokens = 500, held_out.seconds = 3;
                      watcher.evaluated(held_out);
                    }),
            "step 2/8  epoch 0.50  loss 3.2500  12.3k tok/s  0.250 TFLOP/s (50% of peak)  lr 0.001  left 01:15\n"
            "evaluation after step 4: loss 1.0000, perplexity 2.718, 500 tokens in 00:03\n");
}

TEST(Progress, IsJsonWhereAskedFor) {
  const std::string text = written(ProgressBar::json, [](Watcher& watcher) { watcher.stepped(report(2, 3.25)); });
  const Value record = parse_json(text);
  EXPECT_EQ(record.find("step")->as_int(), 2);
  EXPECT_EQ(record.find("grad_norm")->as_double(), 2.5);
  EXPECT_EQ(record.find("entropy")->as_double(), 1.5);
}

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
}

}  // namespace
}  // namespace easydel::train
