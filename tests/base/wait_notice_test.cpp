#include "easydel/base/wait_notice.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel {
namespace {

using namespace std::chrono_literals;

TEST(WaitNotice, IsPrintedOnlyIfTheWaitIsLong) {
  testing::internal::CaptureStderr();
  { const WaitNotice notice("not said", 1h); }
  {
    const WaitNotice notice("waiting for x", 1ms);
    std::this_thread::sleep_for(200ms);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "waiting for x\n");
}

TEST(WaitNotice, NamesAPipeThatNobodyWritesTo) {
  const test::TemporaryFolder folder;
  const auto ran = test::run(
      {"sh", "-c", "mkfifo p; $0 validate p & sleep 4; echo 'actions: [print]' > p; wait $!", test::program().string()},
      {.folder = folder.path()});
  EXPECT_EQ(ran.err.find("waiting for another process to write to the pipe p\n"), 0u) << ran.err;
}

// Ranks other than the first log errors alone, and it is they who wait for the first.
TEST(WaitNotice, IsPrintedByARankThatWaitsForTheFirst) {
  const test::TemporaryFolder folder;
  const std::string yaml = "model: {name_or_path: " + test::test_data("models/stories260K-hf").string() +
                           "}\nsharding: {axis_dims: [2, 1, 1, 1, 1]}\nactions: [{generate: {prompts: a}}]\n";
  test::write_file(folder / "run.yaml", yaml);
  const auto ran =
      test::run({"sh", "-c",
                 "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 $0 elarge run.yaml 2>err & n=0; "
                 "until grep -q waiting err || [ $((n += 1)) = 300 ]; do sleep 0.1; done; kill $!; cat err",
                 test::program().string()},
                {.folder = folder.path()});
  EXPECT_EQ(ran.out, "rank 1 of 2: waiting for rank 0 at 127.0.0.1:1\n");
}

}  // namespace
}  // namespace easydel
