// Partition rules.
#include "easydel/mesh/rules.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::mesh {
namespace {

Mesh grid() { return Mesh(default_axes(), {1, 2, 1, 2, 1}); }

std::string refusal(std::vector<Rule> rules) {
  return test::refusal([&] { PartitionRules(std::move(rules), grid()); });
}

TEST(PartitionRules, TakesTheFirstRuleThatIsFoundInThePath) {
  PartitionRules rules({{"self_attn/.*", {{"fsdp"}, {"tp"}}}, {"kernel$", {{"tp"}}}, {".*", {}}}, grid());
  EXPECT_EQ(*rules.find("model/layers/0/self_attn/q_proj/kernel"), (PartitionSpec{{"fsdp"}, {"tp"}}));
  EXPECT_EQ(*rules.find("model/layers/0/mlp/up_proj/kernel"), (PartitionSpec{{"tp"}}));
  EXPECT_EQ(*rules.find("model/embed_tokens/embedding"), PartitionSpec{});
  EXPECT_EQ(PartitionRules({{"^lm_head", {}}}, grid()).find("model/lm_head/kernel"), nullptr);
}

TEST(PartitionRules, TransposesInOutIntoStorageOrder) {
  EXPECT_EQ(storage_order({{"fsdp"}, {"tp"}}, 2), (PartitionSpec{{"tp"}, {"fsdp"}}));
  EXPECT_EQ(storage_order({{"ep"}, {"fsdp"}, {"tp"}}, 3), (PartitionSpec{{"ep"}, {"tp"}, {"fsdp"}}));
  EXPECT_EQ(storage_order({{"fsdp"}}, 2), (PartitionSpec{{}, {"fsdp"}}));  // a short spec: [in] only
  EXPECT_EQ(storage_order({{"tp"}}, 1), (PartitionSpec{{"tp"}}));
  EXPECT_EQ(storage_order({}, 0), PartitionSpec{});
}

TEST(PartitionRules, RefusesWhatCannotBeMeant) {
  EXPECT_EQ(refusal({{".*", {}}, {"kernel", {{"fdsp"}}}}),
            "sharding.partition_rules[1]: the mesh has no axis 'fdsp'\n    did you mean 'fsdp'?");
  EXPECT_EQ(refusal({{"kernel", {{"tp"}, {"fsdp", "tp"}}}}),
            "sharding.partition_rules[0]: axis 'tp' cuts two dimensions of 'kernel'\n"
            "    an axis may stand once in a rule");
  std::string text = refusal({{"layers/(0", {}}});  // the rest are the library's words
  EXPECT_EQ(text.rfind("sharding.partition_rules[0]: 'layers/(0' is not a regular expression: ", 0), 0u) << text;
}

}  // namespace
}  // namespace easydel::mesh

namespace easydel::mesh {
namespace {

// The guide's rules for a mixture of experts.
std::vector<Rule> guide_rules() {
  return read_rules(parse_yaml(R"(
- ["embed_tokens/embedding", [tp, fsdp]]
- ["self_attn/.*", [fsdp, tp]]
- ["experts/.*/gate_proj/kernel", [ep, fsdp, tp]]
- ["router/kernel", [fsdp]]
- [".*", []]
)"));
}

TEST(MatchPartitionRules, TheFirstThatIsFoundWinsCutToTheDimensions) {
  const auto spec = [](const char* path, std::vector<int64_t> shape) {
    return describe(match_partition_rules(guide_rules(), path, shape));
  };
  EXPECT_EQ(spec("model/embed_tokens/embedding", {64, 32}), "(tp, fsdp)");
  EXPECT_EQ(spec("model/layers/0/self_attn/q_proj/kernel", {32, 32}), "(fsdp, tp)");
  EXPECT_EQ(spec("model/layers/0/self_attn/q_norm/kernel", {8}), "(fsdp)");
  EXPECT_EQ(spec("model/layers/0/mlp/experts/0/gate_proj/kernel", {4, 32, 32}), "(ep, fsdp, tp)");
  EXPECT_EQ(spec("model/norm/kernel", {32}), "()");
  EXPECT_EQ(spec("model/layers/0/self_attn/scale", {1}), "()");
}

TEST(MatchPartitionRules, RefusesAParameterWithoutARule) {
  EXPECT_EQ(
      test::refusal([] { match_partition_rules(read_rules(parse_yaml("{kernel: [tp]}")), "model/norm/scale", {32}); }),
      "partition rules: Partition rule not found for param: model/norm/scale\n    end the rules with [\".*\", []]");
}

TEST(ReadRules, RefusesOtherValues) {
  const auto refused = [](const char* text) { return test::refusal([&] { read_rules(parse_yaml(text)); }); };
  EXPECT_EQ(refused("[kernel]"),
            "sharding.partition_rules[0]: 'kernel' is not a rule\n    write [\"self_attn/q_proj/kernel\", [fsdp, tp]]");
  EXPECT_EQ(refused("[[kernel, tp]]"),
            "sharding.partition_rules[0]: 'tp' is not a partition spec\n    give a list as [fsdp, [tp, sp], null]");
  EXPECT_EQ(refused("[[kernel, [3]]]"),
            "sharding.partition_rules[0]: '3' is not an axis of a mesh\n    write names as fsdp, lists as [fsdp, sp], "
            "or null");
}

TEST(PartitionRules, ASpecForMoreDimensionsThanAMatrixHasIsRefused) {
  const PartitionRules rules(read_rules(parse_yaml("[[q_proj, [fsdp, tp, sp]]]")), Mesh());
  EXPECT_EQ(test::refusal([&] { rules.find("model/q_proj/kernel", 2); }),
            "sharding.partition_rules[0]: the spec has 3 entries, 'model/q_proj/kernel' has 2 dimensions\n"
            "    give at most one entry for each dimension");
  EXPECT_EQ(describe(*rules.find("model/q_proj/bias", 1)), "(fsdp)");
  EXPECT_FALSE(rules.find("model/k_proj/kernel", 2));
}

}  // namespace
}  // namespace easydel::mesh
