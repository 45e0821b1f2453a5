// `describe run`: what a run was, and in what two runs differ.
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::test {
namespace {

void write_run(const std::filesystem::path& folder, const std::string& rate, double last_loss) {
  std::string lines;
  for (int step = 1; step <= 4; ++step)
    lines += str(R"({"step": )", step, R"(, "loss": )", step == 4 ? last_loss : 5.0 - step, R"(, "seconds": )",
                 2 * step, "}\n");
  lines += R"({"step": 4, "eval_loss": 2.5})"
           "\n";
  write_file(folder / "metrics.jsonl", lines);
  for (const char* name : {"run-2", "run-10"})
    write_file(folder / name / "state.json",
               str(R"({"step": 4, "config": {"model": {"name_or_path": "small"}, "trainer": {"trainer_type": "sft", )",
                   R"("learning_rate": )", rate, "}}}"));
}

TEST(DescribeRun, ShowsWhatRanAndItsCurve) {
  const TemporaryFolder folder;
  write_run(folder / "one", "0.001", 1.5);
  for (const std::string given : {"one", "one/run-2"}) {
    const Ran ran = run_program({"describe", "run", given}, {.folder = folder.path()});
    ASSERT_EQ(ran.status, 0) << ran.err;
    for (const char* part : {"sft of small", "4 at step 1, 1.5 at step 4; lowest 1.5 at step 4", "run-2, run-10",
                             "         4 |*", "2.5 at step 4", "seconds"})
      EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
  }
}

TEST(DescribeRun, ShowsInWhatTwoRunsDiffer) {
  const TemporaryFolder folder;
  write_run(folder / "one", "0.001", 1.5);
  write_run(folder / "two", "0.002", 1.25);
  const Ran ran = run_program({"describe", "run", "one", "two"}, {.folder = folder.path()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const size_t settings = ran.out.find("settings that differ\n"), numbers = ran.out.find("last numbers that differ\n");
  ASSERT_NE(settings, std::string::npos) << ran.out;
  ASSERT_NE(numbers, std::string::npos) << ran.out;
  const std::string first = ran.out.substr(settings, numbers - settings), second = ran.out.substr(numbers);
  EXPECT_NE(first.find("trainer.learning_rate  0.001  0.002"), std::string::npos) << first;
  EXPECT_EQ(first.find("trainer_type"), std::string::npos) << first;
  EXPECT_NE(second.find("loss  1.5  1.25"), std::string::npos) << second;
  EXPECT_EQ(second.find("eval_loss"), std::string::npos) << second;
}

TEST(DescribeRun, RefusesWhatIsNoRun) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "empty");
  const Ran empty = run_program({"describe", "run", "empty"}, {.folder = folder.path()});
  EXPECT_EQ(empty.status, 2);
  EXPECT_EQ(empty.err,
            "empty: is not the folder of a run: it has neither metrics.jsonl nor a checkpoint\n"
            "    give the folder with metrics.jsonl, below trainer.save_directory\n");
  std::filesystem::create_directories(folder / "out/model");
  write_file(folder / "out/model/metrics.jsonl", "{}\n");
  EXPECT_EQ(run_program({"describe", "run", "out"}, {.folder = folder.path()}).err,
            "out: is not the folder of a run: it has neither metrics.jsonl nor a checkpoint\n"
            "    did you mean 'out/model'?\n");
  EXPECT_EQ(run_program({"describe", "run", "nowhere"}, {.folder = folder.path()}).status, 2);
}

}  // namespace
}  // namespace easydel::test
