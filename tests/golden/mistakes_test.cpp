// A third of the mistakes in scripts/trials, with their whole messages. All of them: scripts/trials/mistakes.py.
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::test {
namespace {

TEST(Mistakes, HaveTheirMessages) {
  const Ran ran = run({"python3", (source_root() / "scripts/trials/mistakes.py").string(), "--every", "3", "--jobs",
                       "2", "--program", program().string()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find(" mistakes; each has its message\n"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace easydel::test
