// The engine's tokens and the bits of its log-probabilities are the same on every instruction set.
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::test {
namespace {

TEST(ProbeEngine, GivesTheSameBitsOnEveryInstructionSet) {
  const TemporaryFolder folder;
  const std::string ids = R"({"prompt_token_ids": [5, 9, 17, 33, 64, 65, 66, 101, 7, 8, 31, 22, 90, 91, 92, 3, 44)";
  write_file(folder / "lines.jsonl",
             ids +
                 R"(], "sampling": {"max_tokens": 24, "temperature": 0, "logprobs": 3}})"
                 "\n" +
                 ids +
                 R"(, 5], "sampling": {"max_tokens": 20, "n": 2, "seed": 3}, "arrive": 3})"
                 "\n" +
                 R"({"prompt_token_ids": [5, 9], "sampling": {"max_tokens": 16, "seed": 5}, "arrive": 1})"
                 "\n");
  struct Case {
    const char *model, *dtype, *weights;
  };
  for (const Case& one : {Case{"models/stories260K-hf", "fp32", ""}, Case{"models/stories260K-hf", "bf16", ""},
                          Case{"models/stories260K-hf", "bf16", "a8bit"}, Case{"hf_goldens/qwen3_next", "fp32", ""},
                          Case{"hf_goldens/gpt_oss", "bf16", ""}, Case{"hf_goldens/deepseek_v3", "bf16", ""}}) {
    std::string expected;
    int sets = 0;
    for (const char* const isa : {"reference", "avx2", "avx512", "avx512_vnni", "amx"}) {
      // Pages and steps differ, too.
      const std::string pages = sets % 2 == 0 ? "16" : "3", tokens = sets % 2 == 0 ? "64" : "7";
      std::vector<std::string> arguments = {"probe",
                                            "engine",
                                            test_data(one.model).string(),
                                            "--jsonl",
                                            (folder / "lines.jsonl").string(),
                                            "--pages",
                                            "80",
                                            "--set",
                                            std::string("loader.dtype=") + one.dtype,
                                            "--set",
                                            "esurge.page_size=" + pages,
                                            "--set",
                                            "esurge.max_num_batched_tokens=" + tokens,
                                            "--set",
                                            "esurge.enable_prefix_caching=false"};
      if (*one.weights) arguments.insert(arguments.end(), {"--set", std::string("quantization.method=") + one.weights});
      const Ran ran =
          run_program(arguments, {.environment = {{"EASYDEL_ISA", isa}, {"EASYDEL_BF16_ORDER", "bf16_tile"}}});
      if (ran.err.find("this machine cannot run") != std::string::npos) continue;
      ASSERT_EQ(ran.status, 0) << isa << ran.err;
      if (sets++ == 0) expected = ran.out;
      EXPECT_EQ(ran.out.find("error"), std::string::npos) << ran.out;
      EXPECT_EQ(ran.out, expected) << one.model << " in " << one.dtype << " " << one.weights << " on " << isa;
    }
    EXPECT_GE(sets, 2) << "one instruction set beside the reference";
  }
}

}  // namespace
}  // namespace easydel::test
