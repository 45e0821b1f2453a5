// Small versions of the campaigns in scripts/trials.
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::test {
namespace {

class Trials : public testing::TestWithParam<const char*> {};

TEST_P(Trials, LoseNothing) {
  const Ran ran = run({"python3", (source_root() / "scripts/trials" / GetParam()).string(), "--count", "20",
                       "--program", program().string()});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("; nothing was lost\n"), std::string::npos) << ran.out << ran.err;
}

TEST(AdapterTrials, LoseNothing) {
  const Ran ran = run({"python3", (source_root() / "scripts/trials/kills.py").string(), "--count", "10", "--lora",
                       "{r: 4, dropout: 0.1, use_dora: true}", "--program", program().string()});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("; nothing was lost\n"), std::string::npos) << ran.out << ran.err;
}

INSTANTIATE_TEST_SUITE_P(All, Trials, testing::Values("kills.py", "corruption.py", "disk_faults.py", "two_runs.py"),
                         [](const auto& info) {
                           return std::string(info.param, std::string_view(info.param).find('.'));
                         });

}  // namespace
}  // namespace easydel::test
