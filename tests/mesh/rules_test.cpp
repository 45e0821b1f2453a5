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

TEST(PartitionRules, TurnsInOutIntoStorageOrder) {
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
  EXPECT_EQ(text.rfind("sharding.partition_rules[0]: 'layers/(0' is no regular expression: ", 0), 0u) << text;
}

}  // namespace
}  // namespace easydel::mesh
