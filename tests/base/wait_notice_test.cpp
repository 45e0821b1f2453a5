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

}  // namespace
}  // namespace easydel
