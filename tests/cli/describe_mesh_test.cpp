// `describe mesh`: plans of models whose weights do not exist, and errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/data.h"

namespace easydel {
namespace {

using test::run_program;

// A Llama of 70 G parameters: its config.json alone.
void write_large(const test::TemporaryFolder& folder, const std::string& sharding) {
  test::write_file(
      folder / "model/config.json",
      R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
                       "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
                       "tie_word_embeddings": false})");
  test::write_file(folder / "run.yaml", "model: {name_or_path: model}\nsharding: " + sharding + "\nactions: [train]\n");
}

TEST(DescribeMesh, SaysWhatEachRankHolds) {
  const test::TemporaryFolder folder;
  write_large(folder, "{axis_dims: [1, 32, 1, 8, 1]}");
  // Says last how much memory the program took at most, in KiB; this process cannot tell it from its other children.
  const std::string measured =
      "import resource, subprocess, sys; status = subprocess.run(sys.argv[1:]).returncode; "
      "sys.stderr.write('\\n%d' % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(status)";
  const auto ran = test::run({"python3", "-c", measured, test::program().string(), "describe", "mesh", "run.yaml",
                              "--devices", "256", "--rank", "9"},
                             {.folder = folder.path()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("mesh        dp 1, fsdp 32, ep 1, tp 8, sp 1: 256 ranks\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("70.6 G parameters, 131 GiB\n"), std::string::npos) << ran.out;
  // Rank 9 is the second along fsdp and the second along tp.
  EXPECT_NE(ran.out.find("8192 x 28672   (fsdp, tp)    256:512 x 3584:7168"), std::string::npos) << ran.out;
  EXPECT_EQ(std::ranges::count(ran.out, '\n'), 3 + 1 + 1 + 12 + 1 + 1 + 256) << ran.out;
  EXPECT_LT(std::stol(ran.err.substr(ran.err.rfind('\n') + 1)), 200 * 1024) << "KiB";
}

TEST(DescribeMesh, RulesOfTheRunComeFirst) {
  const test::TemporaryFolder folder;
  write_large(
      folder,
      "{axis_dims: [1, 2, 1, 4, 1], partition_rules: [[\"embed_tokens/embedding\", [tp, fsdp]], [\"mlp/.*\", []]]}");
  const auto ran = run_program({"describe", "mesh", "run.yaml", "--devices", "8"}, {.folder = folder.path()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("2 of sharding.partition_rules, then those of the model family"), std::string::npos);
  EXPECT_NE(ran.out.find("128256 x 8192  (tp, fsdp)    0:32064 x 0:4096"), std::string::npos) << ran.out;
}

TEST(DescribeMesh, RefusesSizesAndRulesThatAreWrong) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& sharding, std::vector<std::string> more = {}) {
    write_large(folder, sharding);
    std::vector<std::string> command = {"describe", "mesh", "run.yaml", "--devices", "8"};
    command.insert(command.end(), more.begin(), more.end());
    const auto ran = run_program(command, {.folder = folder.path()});
    EXPECT_EQ(ran.status, 2);
    return ran.err;
  };
  EXPECT_EQ(refused("{axis_dims: [1, 3, 1, -1, 1]}"),
            "sharding.axis_dims: cannot reshape array of size 8 into shape (1,3,1,newaxis,1)\n"
            "    the product of the dims must divide the number of ranks, 8; start that many ranks with --nproc, or "
            "write -1 for one axis\n");
  EXPECT_EQ(refused("{partition_rules: [[\"q_proj\", [fsdp, pt]]]}"),
            "run.yaml:2:29: sharding.partition_rules[0]: the mesh has no axis 'pt'\n    did you mean 'tp'?\n"
            "1 problem in run.yaml; nothing was run.\n");
  EXPECT_EQ(refused("{partition_rules: [[\"q_proj(\", [fsdp]]]}")
                .find("run.yaml:2:29: sharding.partition_rules[0]: 'q_proj(' is not a regular expression: "),
            0u);
  EXPECT_EQ(
      refused("{partition_rules: [[\"q_proj/kernel\", [fsdp, tp, sp]]]}"),
      "sharding.partition_rules[0]: the spec has 3 entries, 'model/layers/0/self_attn/q_proj/kernel' has 2 dimensions\n"
      "    give at most one entry for each dimension\n");
  EXPECT_EQ(refused("{dcn_axis_dims: [1, 2]}"),
            "run.yaml:2:27: sharding.dcn_axis_dims: 2 dims for 5 axis names (dp, fsdp, ep, tp, sp)\n    give one for "
            "each axis; 1 for an axis that stays within a host\n1 problem in run.yaml; nothing was run.\n");
  EXPECT_EQ(refused("{}", {"--rank", "8"}), "--rank: 8 is not below --devices 8\n    ranks count from 0\n");
}

}  // namespace
}  // namespace easydel
