// `describe engine`: the limits that `serve` would have.
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::test {
namespace {

TEST(DescribeEngine, ShowsTheLimitsOfTheSection) {
  const std::string model = test_data("models/stories260K-hf").string();
  const Ran ran = run_program({"describe", "engine", model, "--set", "esurge.max_num_seqs=3", "--set",
                               "esurge.max_num_batched_tokens=100", "--set", "esurge.page_size=16", "--dtype", "fp32"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(
      ran.out,
      "context of 512 tokens\n"
      "up to 3 sequences at once\n"
      "steps of up to 100 tokens\n"
      "KV cache: 1.88 MiB, 96 pages of 16 tokens (1536 tokens); all sequences at their maximum length need no more\n"
      "20.0 KiB a page of layers that see all tokens\n");
  EXPECT_EQ(ran.err, "");
  const Ran both_sides = run_program({"describe", "engine", test_data("hf_goldens/bert_mlm").string()});
  EXPECT_EQ(both_sides.status, 2);
  EXPECT_NE(both_sides.err.find("attends to both sides"), std::string::npos) << both_sides.err;
}

}  // namespace
}  // namespace easydel::test
