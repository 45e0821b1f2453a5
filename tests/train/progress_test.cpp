#include "easydel/train/progress.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>

#include "train/reports.h"

namespace easydel::train {
namespace {

using test::report;

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

}  // namespace
}  // namespace easydel::train
