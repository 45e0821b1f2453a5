// What published config.json files say that those which transformers writes do not.
#include <gtest/gtest.h>

#include "easydel/models/model.h"
#include "support/data.h"

namespace easydel::models {
namespace {

constexpr const char* kSizes = R"("hidden_size": 32, "intermediate_size": 48, "vocab_size": 96, "num_hidden_layers": 3,
  "num_attention_heads": 4, "max_position_embeddings": 64)";

class Published : public testing::Test {
 protected:
  std::shared_ptr<Model> model_of(const std::string& keys) const {
    test::write_file(work_ / "config.json", str("{", keys, ", ", kSizes, "}"));
    return load_model(work_.path(), {});
  }
  std::string refusal_of(const std::string& keys) const {
    const std::string text = test::refusal([&] { model_of(keys); });
    return test::replaced(text, (work_ / "config.json").string(), "FILE");
  }

 private:
  test::TemporaryFolder work_;
};

TEST_F(Published, AClassByAnotherNameIsKnownByItsEnding) {
  const auto task = [&](const std::string& type, const std::string& name) {
    return model_of(str(R"("model_type": ")", type, R"(", "architectures": [")", name, "\"]"))->task();
  };
  EXPECT_EQ(task("llama", "LLaMAForCausalLM"), Task::causal_lm);
  EXPECT_EQ(task("internlm3", "LlamaForSequenceClassification"), Task::sequence_classification);
  EXPECT_EQ(task("roberta", "MyRobertaForMaskedLM"), Task::masked_lm);
  const std::string built =
      "LlamaForCausalLM, LlamaModel, LlamaForSequenceClassification, LlamaForTokenClassification, "
      "LlamaForQuestionAnswering";
  EXPECT_EQ(refusal_of(R"("model_type": "llama", "architectures": ["LlamaForRewardModel"])"),
            "FILE: architectures: 'LlamaForRewardModel' is not built yet\n    built for 'llama': " + built);
  EXPECT_EQ(refusal_of(R"("model_type": "llama", "architectures": ["LlamaForMaskedLM"])"),
            "FILE: architectures: 'LlamaForMaskedLM' is not built yet\n    built for 'llama': " + built);
}

TEST_F(Published, APatternInLettersStandsBesideTheListThatSaysTheSame) {
  const std::string pattern = R"("model_type": "exaone4", "num_key_value_heads": 2, "sliding_window_pattern": "LLLG")";
  EXPECT_TRUE(model_of(pattern + R"(, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"])"));
  EXPECT_EQ(refusal_of(pattern), "FILE: sliding_window_pattern: \"LLLG\" is not an integer");
}

TEST_F(Published, FamiliesOfCompressedAttentionDoNotLookAtTheNumberOfKeys) {
  EXPECT_TRUE(model_of(R"("model_type": "deepseek_v3", "num_key_value_heads": 128, "n_routed_experts": 8,
    "moe_intermediate_size": 12, "kv_lora_rank": 16, "q_lora_rank": 12, "num_experts_per_tok": 2)"));
  EXPECT_EQ(refusal_of(R"("model_type": "deepseek_v3", "partial_rotary_factor": 0.5)"),
            "FILE: partial_rotary_factor: 0.5 is not built for this family");
}

TEST_F(Published, TheLaterNameOfACountGoesBeforeTheOlder) {
  const auto model = model_of(R"("model_type": "qwen3_moe", "num_experts": 6, "num_local_experts": 4,
    "num_key_value_heads": 2, "moe_intermediate_size": 12, "num_experts_per_tok": 2)");
  EXPECT_EQ(model->parameters().find("model.layers.0.mlp.gate.weight")->shape[0], 4);
}

TEST_F(Published, OptionsThatNoCheckpointUsesAreRefused) {
  EXPECT_EQ(refusal_of(R"("model_type": "internlm3", "num_key_value_heads": 2, "qkv_bias": true)"),
            "FILE: qkv_bias: is not what bias is\n    give both the same value");
  EXPECT_EQ(refusal_of(R"("model_type": "iquestcoder", "num_key_value_heads": 2, "clip_qkv": 8.0)"),
            "FILE: clip_qkv: is not built for this family\n    write null");
  EXPECT_EQ(refusal_of(R"("model_type": "iquestcoder", "num_key_value_heads": 2, "use_sliding_window": true)"),
            "FILE: use_sliding_window: true is not built for this family\n    write false");
  EXPECT_EQ(refusal_of(R"("model_type": "gpt_neox", "head_dim": 12)"),
            "FILE: head_dim: 12 is not hidden_size / num_attention_heads, 8");
}

}  // namespace
}  // namespace easydel::models
