// Errors in a run's mesh, rules, rotary positions and model folders: each is one clear error with its place.
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel {
namespace {

class BadConfiguration : public testing::Test {
 protected:
  BadConfiguration() {
    std::filesystem::copy(test::test_data("models/stories260K-hf"), folder_ / "model",
                          std::filesystem::copy_options::recursive);
  }
  // The output of `easydel elarge` for a run with these lines after the model's.
  std::string refused(const std::string& lines, const std::string& model = "model",
                      std::vector<std::pair<std::string, std::string>> environment = {}) const {
    test::write_file(folder_ / "run.yaml",
                     "model: {name_or_path: " + model + "}\n" + lines + "\nactions: [{generate: {prompts: x}}]\n");
    const test::Ran ran = test::run_program({"--quiet", "elarge", "run.yaml"},
                                            {.environment = std::move(environment), .folder = folder_.path()});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  }
  static std::string one(const std::string& problem) { return problem + "\n1 problem in run.yaml; nothing was run.\n"; }

  test::TemporaryFolder folder_;
};

TEST_F(BadConfiguration, MeshesThatFitNoRanks) {
  EXPECT_EQ(refused("sharding: {axis_dims: [1, 3, 1, 1, 1]}"),
            one("run.yaml:2:23: sharding.axis_dims: cannot reshape array of size 1 into shape (1,3,1,1,1)\n"
                "    the product of the dims must be the number of ranks, 1; start that many ranks with --nproc, or "
                "write -1 for one axis"));
  EXPECT_EQ(refused("sharding: {axis_dims: [-1, -1, 1, 1, 1]}"),
            one("run.yaml:2:23: sharding.axis_dims: has -1 more than once; only one axis can take the remaining "
                "ranks\n    give the sizes of all axes but one"));
  EXPECT_EQ(refused("sharding: {axis_dims: [1, -1, 1]}"),
            one("run.yaml:2:23: sharding.axis_dims: sharding.axis_dims (3) must match sharding.axis_names (5)\n"
                "    give one size for each of: dp, fsdp, ep, tp, sp"));
  EXPECT_EQ(refused("sharding: {axis_names: [dp, fsdp, ep, tp, xp]}"),
            one("run.yaml:2:24: sharding.axis_names: axes other than dp, fsdp, ep, tp, sp are not built yet\n    keep "
                "these names in this order"));
}

TEST_F(BadConfiguration, RulesOfPartitioning) {
  EXPECT_EQ(refused("sharding: {partition_rules: [[\"q_proj(\", [fsdp, tp]]]}"),
            one("run.yaml:2:29: sharding.partition_rules[0]: 'q_proj(' is not a regular expression: Mismatched '(' and "
                "')' in regular expression"));
  EXPECT_EQ(refused("sharding: {partition_rules: [[\"q_proj\", [fsdp, pt]]]}"),
            one("run.yaml:2:29: sharding.partition_rules[0]: the mesh has no axis 'pt'\n    did you mean 'tp'?"));
  EXPECT_EQ(refused("sharding: {partition_rules: [[\"q_proj\", [fsdp, tp, ep, sp]]]}"),
            "run.yaml:2:30: sharding.partition_rules[0]: the spec has 4 entries, "
            "'model/layers/0/self_attn/q_proj/kernel' has 2 dimensions\n"
            "    give at most one entry for each dimension\n");
  test::write_file(folder_ / "run.yaml",
                   "model: {name_or_path: model}\nsharding: {partition_rules: [[\"q_proj\", [fsdp, tp, ep, "
                   "sp]]]}\nactions: [validate]\n");
  EXPECT_EQ(test::run_program({"--quiet", "elarge", "run.yaml"}, {.folder = folder_.path()})
                .err,  // and not only when it is loaded
            "run.yaml:2:30: sharding.partition_rules[0]: the spec has 4 entries, "
            "'model/layers/0/self_attn/q_proj/kernel' has 2 dimensions\n"
            "    give at most one entry for each dimension\n");
  EXPECT_EQ(refused("sharding: {partition_axis: {heads_axis: tp}}"),
            one("run.yaml:2:29: sharding.partition_axis.heads_axis: no such key\n    did you mean 'head_axis'?"));
  EXPECT_EQ(
      refused("sharding: {partition_axis: {head_axis: tpp}}"),
      one("run.yaml:2:40: sharding.partition_axis.head_axis: the mesh has no axis 'tpp'\n    did you mean 'tp'?"));
}

TEST_F(BadConfiguration, RotaryPositions) {
  EXPECT_EQ(refused("base_config: {values: {rope_scaling: {rope_type: bogus, factor: 2}}}"),
            "run.yaml:2:50: base_config.values.rope_scaling.rope_type: unknown rope type 'bogus'\n"
            "    known: default, linear, dynamic, yarn, deepseek_yarn, llama3, longrope, mrope, proportional\n");
  EXPECT_EQ(refused("base_config: {values: {rope_scaling: {rope_type: linear}}}"),
            "run.yaml:2:38: base_config.values.rope_scaling.factor: is missing\n    rope type 'linear' needs it\n");
  for (const char* type : {"yarn", "llama3", "deepseek_yarn", "longrope"})
    EXPECT_EQ(
        refused("base_config: {values: {rope_scaling: {rope_type: " + std::string(type) + ", factor: 2}}}"),
        "run.yaml:2:38: base_config.values.rope_scaling.original_max_position_embeddings: is missing\n    rope type '" +
            std::string(type) + "' needs it\n");
}

TEST_F(BadConfiguration, ACorruptConfigJson) {
  test::write_file(folder_ / "model/config.json", "{\"model_type\": \"llama\",\n");
  EXPECT_EQ(refused(""),
            one("run.yaml:1:23: model.name_or_path: model/config.json:2:1: is not JSON: it ends too early\n    is the "
                "file complete?"));
  test::write_file(folder_ / "model/config.json", "[1]");
  EXPECT_EQ(refused(""), one("run.yaml:1:23: model.name_or_path: model/config.json: is not a mapping"));
}

TEST_F(BadConfiguration, NamesThatNoHubHas) {
  using Environment = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(
      refused("", "owner/name", Environment{{"HF_HUB_OFFLINE", "1"}, {"HF_HUB_CACHE", "/nowhere"}}),
      one("run.yaml:1:23: model.name_or_path: 'owner/name' is not in the cache /nowhere, and HF_HUB_OFFLINE is set\n"
          "    give a folder, or try again"));
  EXPECT_EQ(refused("", "a/b/c"), one("run.yaml:1:23: model.name_or_path: 'a/b/c': no such folder\n    give a folder "
                                      "with config.json and *.safetensors, or a name on the Hugging Face Hub"));
  EXPECT_EQ(refused("", "owner/name",
                    Environment{
                        {"HF_ENDPOINT", "http://127.0.0.1:9"}, {"HF_HUB_OFFLINE", "0"}, {"HF_HUB_CACHE", "/nowhere"}}),
            one("run.yaml:1:23: model.name_or_path: 'owner/name' is not in the cache /nowhere, and the hub cannot be "
                "reached: http://127.0.0.1:9/api/models/owner/name/revision/main: Couldn't connect to server\n    give "
                "a folder, or try again"));
}

}  // namespace
}  // namespace easydel
