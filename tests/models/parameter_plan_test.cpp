// Rules of the documents on models that are built.
#include "easydel/models/parameter_plan.h"

#include <gtest/gtest.h>

#include <map>

#include "support/data.h"

namespace easydel::models {
namespace {

const char* const kLlama =
    "{model_type: llama, hidden_size: 32, intermediate_size: 64, num_hidden_layers: 2, num_attention_heads: 4, "
    "num_key_value_heads: 2, vocab_size: 64, "
    "tie_word_embeddings: false}";
const char* const kMoe =
    "{model_type: qwen3_moe, hidden_size: 32, intermediate_size: 64, num_hidden_layers: 1, num_attention_heads: 4, "
    "num_key_value_heads: 2, head_dim: 8, "
    "vocab_size: 64, num_experts: 4, num_experts_per_tok: 2, moe_intermediate_size: 32, tie_word_embeddings: false}";

std::map<std::string, std::string> layout(const char* config, const char* rules) {
  const Value model = parse_yaml(config);
  const auto table = plan_parameters(model, "config.json");
  const auto parsed = mesh::read_rules(parse_yaml(rules));
  std::map<std::string, std::string> out;
  for (const auto& parameter : easydel_parameters(model, *table))
    out[parameter.path] = mesh::describe(mesh::match_partition_rules(parsed, parameter.path, parameter.shape));
  return out;
}

TEST(PartitionRulesOfTheGuide, ADenseModelIsCutAsDocumented) {
  auto cut = layout(kLlama, R"(
- ["embed_tokens/embedding", [tp, fsdp]]
- ["self_attn/q_proj/kernel", [fsdp, tp]]
- ["self_attn/k_proj/kernel", [fsdp, tp]]
- ["self_attn/v_proj/kernel", [fsdp, tp]]
- ["self_attn/o_proj/kernel", [tp, fsdp]]
- ["mlp/gate_proj/kernel", [fsdp, tp]]
- ["mlp/up_proj/kernel", [fsdp, tp]]
- ["mlp/down_proj/kernel", [tp, fsdp]]
- [".*", []]
)");
  EXPECT_EQ(cut["model/embed_tokens/embedding"], "(tp, fsdp)");
  for (const char* layer : {"0", "1"}) {
    const std::string path = str("model/layers/", layer, "/");
    for (const char* name :
         {"self_attn/q_proj", "self_attn/k_proj", "self_attn/v_proj", "mlp/gate_proj", "mlp/up_proj"})
      EXPECT_EQ(cut[path + name + "/kernel"], "(fsdp, tp)") << path << name;
    for (const char* name : {"self_attn/o_proj", "mlp/down_proj"})
      EXPECT_EQ(cut[path + name + "/kernel"], "(tp, fsdp)") << path << name;
    EXPECT_EQ(cut[path + "input_layernorm/kernel"], "()");
  }
  EXPECT_EQ(cut["lm_head/kernel"], "()");
}

TEST(PartitionRulesOfTheGuide, AMixtureOfExpertsIsCutAsDocumented) {
  auto cut = layout(kMoe, R"(
- ["embed_tokens/embedding", [tp, fsdp]]
- ["self_attn/.*", [fsdp, tp]]
- ["experts/.*/gate_proj/kernel", [ep, fsdp, tp]]
- ["experts/.*/up_proj/kernel", [ep, fsdp, tp]]
- ["experts/.*/down_proj/kernel", [ep, tp, fsdp]]
- ["gate/kernel", [fsdp]]
- [".*", []]
)");
  EXPECT_EQ(cut["model/layers/0/self_attn/o_proj/kernel"], "(fsdp, tp)");
  EXPECT_EQ(cut["model/layers/0/self_attn/q_norm/kernel"], "(fsdp)");
  EXPECT_EQ(cut["model/layers/0/mlp/experts/gate_proj/kernel"], "(ep, fsdp, tp)");
  EXPECT_EQ(cut["model/layers/0/mlp/experts/down_proj/kernel"], "(ep, tp, fsdp)");
  EXPECT_EQ(cut["model/layers/0/mlp/gate/kernel"], "(fsdp)");
  EXPECT_EQ(cut["model/norm/kernel"], "()");
}

TEST(GetPartitionRules, AModelsOwnRulesGiveItsOwnLayout) {
  const Value model = parse_yaml(kLlama);
  const auto table = plan_parameters(model, "config.json");
  const auto parameters = easydel_parameters(model, *table);
  const auto rules = get_partition_rules(parameters);
  EXPECT_EQ(rules.size(), 13u);
  EXPECT_EQ(rules[1].pattern, "^(?:.*/)?model/layers/\\d+/input_layernorm/kernel$");
  EXPECT_EQ(rules.back().pattern, ".*");
  for (const auto& parameter : parameters)
    EXPECT_EQ(mesh::match_partition_rules(rules, parameter.path, parameter.shape), parameter.spec) << parameter.path;
}

}  // namespace
}  // namespace easydel::models
