#include "easydel/train/progress.h"

#include <gtest/gtest.h>

#include <pty.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

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
  EXPECT_EQ(
      written(ProgressBar::tqdm,
              [](Watcher& watcher) {
                watcher.stepped(report(2, 3.25));
                StepReport quiet = report(3, 3);
                quiet.logged = false;
                watcher.stepped(quiet);
                EvaluationReport held_out;
                held_out.step = 4, held_out.loss = 1, held_out.tokens = 500, held_out.seconds = 3;
                held_out.metrics = {{"perplexity", 2.718}, {"bits_per_byte", 0.5}};
                watcher.evaluated(held_out);
              }),
      "step 2/8  epoch 0.50  loss 3.2500 (mean of 10)  12.3k tok/s  0.250 TFLOP/s (50% of peak)  lr 0.001  left 01:15\n"
      "evaluation after step 4: loss 1.0000, perplexity 2.718, 0.5000 bits per byte, 500 tokens in 00:03\n");
}

// What a terminal of this many columns gets.
std::string shown(int columns, const std::function<void(Watcher&)>& use) {
  int terminal = -1, other = -1;
  winsize size{};
  size.ws_row = 24, size.ws_col = static_cast<unsigned short>(columns);
  EXPECT_EQ(openpty(&terminal, &other, nullptr, nullptr, &size), 0);
  std::FILE* file = fdopen(other, "w");
  ::setenv("NO_COLOR", "1", 1);
  std::string text;
  std::thread reader([&] {
    char bytes[4096];
    for (ssize_t got; (got = ::read(terminal, bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<size_t>(got));
  });
  use(*make_progress(ProgressBar::tqdm, file));
  std::fclose(file);
  reader.join();
  ::close(terminal);
  ::unsetenv("NO_COLOR");
  return text;
}

// The lines in the order in which they were drawn; an empty one where the line was wiped.
std::vector<std::string> drawn(std::string text) {
  std::vector<std::string> out;
  const std::string wipe = "\r\033[K";
  for (size_t at = text.find(wipe); at != std::string::npos;) {
    const size_t begin = at + wipe.size();
    at = text.find(wipe, begin);
    out.push_back(text.substr(begin, at == std::string::npos ? at : at - begin));
    while (out.back().ends_with('\n') || out.back().ends_with('\r')) out.back().pop_back();
  }
  return out;
}

void whole_run(Watcher& watcher) {
  watcher.worked({Work::Kind::reading, 2048, 0});
  watcher.worked({Work::Kind::reading, 1, 1});
  watcher.started(0, 8);
  for (int part = 0; part < 4; ++part) watcher.worked({Work::Kind::step, part, 4});
  watcher.stepped(report(1, 3.25));
  watcher.worked({Work::Kind::step, 2, 4});
  watcher.worked({Work::Kind::evaluation, 3, 10});
  EvaluationReport held_out;
  held_out.step = 1, held_out.loss = 1, held_out.tokens = 500, held_out.seconds = 3;
  held_out.metrics = {{"perplexity", 2.718}, {"bits_per_byte", 0.5}};
  watcher.evaluated(held_out);
  watcher.finished();
}

TEST(Progress, IsOneLineOnATerminalOfAnyWidth) {
  for (const int columns : {200, 80, 60, 40, 24, 12, 5})
    for (const std::string& line : drawn(shown(columns, whole_run))) {
      EXPECT_LT(line.size(), static_cast<size_t>(columns)) << line;
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    }
}

TEST(Progress, HasABarAt80ColumnsThatMovesWithinAStep) {
  const std::string empty(40, '.');
  EXPECT_EQ(drawn(shown(80, whole_run)),
            (std::vector<std::string>{
                "reading the data  2048 rows",
                "",
                "step 0/8 [" + empty + "]",
                "step 0/8 [" + empty + "]",
                "step 0/8 [#" + empty.substr(1) + "]",
                "step 0/8 [###" + empty.substr(3) + "]",
                "step 0/8 [####" + empty.substr(4) + "]",
                "step 1/8 [##...............]  loss 3.2500 (mean of 10)  12.3k tok/s  left 01:15",
                "step 1/8 [###..............]  loss 3.2500 (mean of 10)  12.3k tok/s  left 01:15",
                "evaluation 3/10 [############............................]",
                "evaluation after step 1: loss 1.0000, perplexity 2.718, 0.5000 bits per byte",
                "step 1/8 [###..............]  loss 3.2500 (mean of 10)  12.3k tok/s  left 01:15",
                "step 1/8 [###..............]  loss 3.2500 (mean of 10)  12.3k tok/s  left 01:15",
            }));
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
