// Quantization and adapters mean the same layers.
#include "easydel/models/lora_targets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "easydel/models/model.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/weights/folder.h"
#include "support/data.h"

namespace easydel::models {
namespace {

TEST(LinearLayers, OfQuantizationAndOfAdaptersAreTheSame) {
  for (const char* name :
       {"llama", "gpt2", "mixtral", "deepseek_v3", "gpt_oss", "mamba", "xlstm", "falcon_h1", "bert_seqcls", "jetmoe"}) {
    LoadOptions options;
    options.quantization =
        nn::Quantization{.format = quant::format_of({.method = "8bit"}, "quantization"), .pattern = ".*"};
    const auto model = load_model(test::test_data(str("hf_goldens/", name)), options);
    std::set<std::string> coded;
    for (const nn::Entry& entry : model->parameters().entries())
      if (!entry.shard.defined()) coded.insert(nn::layer_name(entry));
    const auto targets = lora_targets(model->parameters(), ".*", 8);
    EXPECT_EQ(coded, std::set<std::string>(targets.begin(), targets.end())) << name;
    EXPECT_FALSE(targets.empty());
    for (const nn::Entry& entry : model->parameters().entries())
      EXPECT_EQ(nn::is_linear(entry), coded.contains(nn::layer_name(entry)) && entry.path.ends_with(".weight"))
          << entry.path;
  }
}

TEST(LinearLayers, AreFoundByTheirNames) {
  const Value config = parse_json(R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 64,
    "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 64, "tie_word_embeddings": false})");
  const auto table = plan_parameters(config, "config.json");
  EXPECT_EQ(lora_targets(*table, "q_proj|lm_head", 1),
            (std::vector<std::string>{"lm_head", "model.layers.0.self_attn.q_proj"}));
  EXPECT_EQ(lora_targets(*table, ".*", 1).size(), 8u);
  EXPECT_THROW(lora_targets(*table, ".*", 0), UserError);
  EXPECT_THROW(lora_targets(*table, "(", 1), UserError);
}

}  // namespace
}  // namespace easydel::models
