// Lists of config.json that name one thing a layer must name as many as there are layers.
#include <gtest/gtest.h>

#include "easydel/models/model.h"
#include "support/data.h"

namespace easydel::models {
namespace {

struct List {
  const char *family, *key, *two;  // two: a list of two
};

class LayerLists : public testing::TestWithParam<List> {};

TEST_P(LayerLists, ThatAreTooShortAreRefused) {
  const List& list = GetParam();
  const test::TemporaryFolder work;
  test::write_file(work / "config.json", str(R"({"model_type": ")", list.family,
                                             R"(", "hidden_size": 32, "intermediate_size": 48, "vocab_size": 96,
                       "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 8,
                       "mamba_n_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, ")",
                                             list.key, "\": ", list.two, "}"));
  const std::string refusal = test::refusal([&] { load_model(work.path(), {}); });
  EXPECT_EQ(test::replaced(refusal, (work / "config.json").string(), "FILE"),
            str("FILE: ", list.key, ": names 2 layers; num_hidden_layers is 3"));
}

INSTANTIATE_TEST_SUITE_P(
    All, LayerLists,
    testing::Values(List{"gemma3_text", "layer_types", R"(["full_attention", "full_attention"])"},
                    List{"lfm2", "layer_types", R"(["conv", "full_attention"])"},
                    List{"granitemoehybrid", "layer_types", R"(["mamba", "attention"])"},
                    List{"granitemoehybrid", "layers_block_type", R"(["mamba", "attention"])"},
                    List{"kimi_linear", "layer_types", R"(["linear_attention", "full_attention"])"},
                    List{"llama4_text", "layer_types", R"(["chunked_attention", "full_attention"])"},
                    List{"llama4_text", "no_rope_layers", "[1, 0]"},
                    List{"minimax", "layer_types", R"(["linear_attention", "full_attention"])"},
                    List{"qwen3_next", "layer_types", R"(["linear_attention", "full_attention"])"},
                    List{"deepseek_v3", "mlp_layer_types", R"(["dense", "sparse"])"},
                    List{"smollm3", "no_rope_layers", "[1, 0]"}),
    [](const auto& info) { return std::string(info.param.family) + "_" + info.param.key; });

TEST(Numbers, ThatNothingCanBeComputedWithAreRefused) {
  const test::TemporaryFolder work;
  const auto refusal = [&](const std::string& config) {
    test::write_file(work / "config.json", config);
    return test::refusal([&] { load_model(work.path(), {}); });
  };
  EXPECT_EQ(refusal(R"({"model_type": "llama", "num_hidden_layers": 1, "rms_norm_eps": -1.0})"),
            "config.json: norms cannot be computed with an epsilon of -1");
  EXPECT_EQ(refusal(R"({"model_type": "llama", "num_hidden_layers": 1, "attention_dropout": 1.5})"),
            "config.json: a dropout of 1.5 is out of range\n    give 0 to below 1");
}

TEST(Counts, ThatNoModelHasAreRefusedBeforeAnythingIsBuilt) {
  const test::TemporaryFolder work;
  const auto refusal = [&](const std::string& config) {
    test::write_file(work / "config.json", config);
    const std::string text = test::refusal([&] { load_model(work.path(), {}); });
    return test::replaced(text, (work / "config.json").string(), "FILE");
  };
  EXPECT_EQ(refusal(R"({"model_type": "llama", "num_hidden_layers": 1000000000})"),
            "FILE: num_hidden_layers: 1000000000 is more than the 65536 that are built");
  EXPECT_EQ(refusal(R"({"model_type": "mixtral", "num_local_experts": 1000000000})"),
            "FILE: 1000000000 experts are more than the 65536 that are built");
  EXPECT_EQ(refusal(R"({"model_type": "qwen3_next", "num_experts_per_tok": 0})"),
            "FILE: num_experts_per_tok: 0 is not positive");
  EXPECT_EQ(refusal(R"({"model_type": "llama", "num_attention_heads": 4611686018427387904, "head_dim": 8})"),
            "FILE: num_attention_heads: 4611686018427387904 is beyond 2147483647");
  EXPECT_EQ(
      refusal(R"({"model_type": "llama", "vocab_size": 2147483647, "hidden_size": 1048576})"),
      "FILE: model.embed_tokens.weight of [2147483647, 1048576] alone would be larger than this machine's memory\n"
      "    is one of the sizes a mistake?");
}

}  // namespace
}  // namespace easydel::models
