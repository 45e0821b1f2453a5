// Families that only EasyDeL has, without golden vectors: each equals, under some of its flags and with other names, a
// family that has them.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <functional>
#include <regex>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/folder.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::models {
namespace {

using Change = std::function<std::pair<std::string, Tensor>(const std::string& name, const Tensor& value)>;

// Logits of 20 tokens.
Tensor logits_of(const std::filesystem::path& folder) {
  const at::NoGradGuard no_gradient;
  const auto model = load_model(folder, {});
  nn::Pass pass = nn::Pass::over({0, 7, 20});
  return model->head().logits(model->forward({at::arange(20, at::kLong) * 4 % 90}, pass).hidden, pass);
}

// Random weights of the family `known` under the names of the family `other`, which may have `more`: both compute the
// same.
void expect_same(const std::string& known, const std::string& other, const Change& change,
                 const std::vector<std::pair<std::string, Tensor>>& more = {}) {
  const test::TemporaryFolder work;
  test::write_file(work / "known/config.json", known);
  save_model(*load_model(work / "known", {}), work / "start");
  std::vector<weights::OutTensor> start, renamed;
  const auto saved = weights::Folder::open(work / "start");
  int64_t seed = 0;
  for (const std::string& given : saved.names()) {
    Tensor value = tensor::from_view(saved.at(given)).clone();
    if (value.dim() == 1) value = value + (at::arange(value.size(0), value.options()) + double(++seed)).sin() * 0.3;
    const auto [name, changed] = change(given, value);
    start.push_back(tensor::to_file(given, value, at::kFloat));
    renamed.push_back(tensor::to_file(name, changed.contiguous(), at::kFloat));
  }
  for (const auto& [name, value] : more) renamed.push_back(tensor::to_file(name, value, at::kFloat));
  weights::write_safetensors(work / "known/model.safetensors", start);
  test::write_file(work / "other/config.json", other);
  weights::write_safetensors(work / "other/model.safetensors", renamed);
  const Tensor a = logits_of(work / "known"), b = logits_of(work / "other");
  EXPECT_TRUE(a.allclose(b, 1e-4, 1e-4)) << (a - b).abs().max().item<double>();
}

std::string sizes(const std::string& more) {
  return R"({"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 96, "max_position_embeddings": 64, "initializer_range": 0.2,
    "pad_token_id": null, "tie_word_embeddings": false, )" +
         more + "}";
}

std::pair<std::string, Tensor> as_it_is(const std::string& name, const Tensor& value) { return {name, value}; }

// Gemma's norms multiply by 1 + weight.
std::pair<std::string, Tensor> plain_norms(const std::string& name, const Tensor& value) {
  return {name, name.find("norm") == std::string::npos ? value : value + 1.0};
}

TEST(Arctic, WithExpertsInEveryLayerIsMixtral) {
  const std::string experts =
      R"("num_local_experts": 4, "num_experts_per_tok": 2, "rope_theta": 1e6, "rms_norm_eps": 1e-5, )";
  expect_same(sizes(experts + R"("model_type": "mixtral")"),
              sizes(experts + R"("model_type": "arctic", "moe_layer_frequency": 1)"), as_it_is);
}

TEST(Arctic, WithoutExpertsIsLlama) {
  expect_same(
      sizes(R"("model_type": "llama", "rope_theta": 1e6, "rms_norm_eps": 1e-5)"),
      sizes(R"("model_type": "arctic", "moe_layer_frequency": 9)"), [](const std::string& name, const Tensor& value) {
        std::string other = std::regex_replace(name, std::regex("mlp\\.gate_proj"), "block_sparse_moe.mlp.w1");
        other = std::regex_replace(other, std::regex("mlp\\.up_proj"), "block_sparse_moe.mlp.w3");
        return std::pair(std::regex_replace(other, std::regex("mlp\\.down_proj"), "block_sparse_moe.mlp.w2"), value);
      });
}

TEST(Grok, WithOneExpertIsGemma2WithoutWindows) {
  // With one expert the router's choice is the same whatever it says.
  std::vector<std::pair<std::string, Tensor>> gates;
  for (int i = 0; i < 4; ++i) gates.emplace_back(str("model.layers.", i, ".moe_block.gate.weight"), at::ones({1, 32}));
  expect_same(
      sizes(R"("model_type": "gemma2", "query_pre_attn_scalar": 16, "attn_logit_softcapping": 3.0,
                       "final_logit_softcapping": null, "sliding_window": 64, "rms_norm_eps": 1e-5)"),
      sizes(R"("model_type": "grok-1", "num_experts": 1, "num_experts_per_tok": 1, "attn_output_multiplier": 0.25,
                       "max_attn_value": 3.0, "embedding_multiplier_scale": 5.656854249492381, "output_multiplier_scale": 1.0)"),
      [](const std::string& name, const Tensor& value) {
        std::string other = name;
        for (const auto& [ours, theirs] :
             std::vector<std::pair<const char*, const char*>>{{"self_attn\\.", "attn."},
                                                              {"input_layernorm", "pre_attn_norm"},
                                                              {"post_attention_layernorm", "post_attn_norm"},
                                                              {"pre_feedforward_layernorm", "pre_moe_norm"},
                                                              {"post_feedforward_layernorm", "post_moe_norm"},
                                                              {"mlp\\.gate_proj", "moe_block.experts.0.linear"},
                                                              {"mlp\\.up_proj", "moe_block.experts.0.linear_v"},
                                                              {"mlp\\.down_proj", "moe_block.experts.0.linear_1"}})
          other = std::regex_replace(other, std::regex(ours), theirs);
        return std::pair(other, plain_norms(name, value).second);
      },
      gates);
}

TEST(Xerxes, WithoutExpertsIsGemma2) {
  expect_same(sizes(R"("model_type": "gemma2", "query_pre_attn_scalar": 8, "attn_logit_softcapping": null,
                       "final_logit_softcapping": 30.0, "sliding_window": 3)"),
              sizes(R"("model_type": "xerxes", "xe_moe": false, "window_pattern": 2, "sliding_window": 3)"),
              plain_norms);
}

TEST(Xerxes, WithNormedQueriesAndKeysIsQwen3) {
  expect_same(sizes(R"("model_type": "qwen3", "hidden_act": "silu")"),
              sizes(R"("model_type": "xerxes", "xe_moe": false, "xe_kvnorm": true, "swish_run": true)"), as_it_is);
}

TEST(Xerxes, RefusesExpertsOfSilu) {
  const test::TemporaryFolder work;
  test::write_file(work / "config.json", sizes(R"("model_type": "xerxes", "swish_run": true)"));
  EXPECT_EQ(
      test::replaced(test::refusal([&] { load_model(work.path(), {}); }), (work / "config.json").string(), "FILE"),
      "FILE: swish_run: true goes with xe_moe: false alone\n    experts are of gelu");
}

// The models that were published, by their config.json: as many parameters as their pages say.
TEST(UpstreamFamilies, HaveThePublishedNumbersOfParameters) {
  const auto parameters = [](const char* config) {
    const auto table = plan_parameters(parse_json(config), "config.json");
    int64_t all = 0;
    for (const nn::Entry& entry : table->entries()) all += entry.elements();
    return all;
  };
  EXPECT_EQ(parameters(R"({"model_type": "internlm2", "bias": false, "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 92544,
    "rope_scaling": {"type": "dynamic", "factor": 2.0}, "rope_theta": 1000000, "max_position_embeddings": 32768})"),
            7737708544);  // InternLM2 7B
  EXPECT_EQ(parameters(R"({"model_type": "exaone", "activation_function": "silu", "head_dim": 128, "hidden_size": 4096,
    "intermediate_size": 14336, "layer_norm_epsilon": 1e-05, "num_attention_heads": 32, "num_key_value_heads": 8,
    "num_layers": 32, "rope_theta": 500000.0, "tie_word_embeddings": false, "vocab_size": 102400})"),
            7818448896);  // EXAONE 3.0 7.8B
  EXPECT_EQ(
      parameters(R"({"model_type": "openelm", "activation_fn_name": "swish", "ffn_dim_divisor": 256, "head_dim": 64,
    "ffn_multipliers": [0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9, 2.13, 2.37, 2.6, 2.83, 3.07, 3.3, 3.53, 3.77, 4.0],
    "ffn_with_glu": true, "max_context_length": 2048, "model_dim": 1280, "normalization_layer_name": "rms_norm",
    "normalize_qk_projections": true, "num_gqa_groups": 4, "num_transformer_layers": 16,
    "num_kv_heads": [3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5],
    "num_query_heads": [12, 12, 12, 12, 12, 16, 16, 16, 16, 16, 16, 16, 20, 20, 20, 20], "qkv_multipliers": [0.5, 1.0],
    "rope_freq_constant": 10000, "rope_max_length": 4096, "share_input_output_layers": true, "vocab_size": 32000})"),
      271527168);  // OpenELM 270M
  EXPECT_NEAR(double(parameters(R"({"model_type": "arctic", "hidden_size": 7168, "intermediate_size": 4864,
    "moe_layer_frequency": 1, "num_attention_heads": 56, "num_experts_per_tok": 2, "num_hidden_layers": 35,
    "num_key_value_heads": 8, "num_local_experts": 128, "parallel_attn_mlp_res": true, "use_residual": true,
    "vocab_size": 32000})")),
              479e9, 1e9);  // Arctic
  EXPECT_NEAR(double(parameters(R"({"model_type": "grok-1", "hidden_size": 6144, "intermediate_size": 32768,
    "num_attention_heads": 48, "num_key_value_heads": 8, "num_hidden_layers": 64, "num_experts": 8,
    "num_experts_per_tok": 2, "tie_word_embeddings": true, "vocab_size": 131072})")),
              315e9, 1e9);  // Grok-1
}

}  // namespace
}  // namespace easydel::models
