#include "easydel/models/model.h"
#include "easydel/models/family.h"
#include "easydel/models/family_configs.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "easydel/base/document.h"
#include "easydel/probe/logits.h"
#include "easydel/tensor/mapped.h"
#include "easydel/tensor/threads.h"
#include "support/data.h"

namespace easydel::models {
namespace {

const char* const small_llama = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 48,
  "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "vocab_size": 96,
  "max_position_embeddings": 64, "initializer_range": 0.2, "note_of_mine": [1, 2]})";
const char* const small_gpt2 =
    R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 40, "n_head": 4,
  "n_layer": 2, "n_positions": 64, "vocab_size": 96, "initializer_range": 0.2})";

// Its shared expert and its experts make tensors of the same names.
const char* const small_moe =
    R"({"model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "hidden_size": 48,
  "intermediate_size": 64, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 40, "num_hidden_layers": 2,
  "num_attention_heads": 6, "num_key_value_heads": 2, "vocab_size": 96, "num_experts": 4, "num_experts_per_tok": 2,
  "initializer_range": 0.2})";

struct Folder {
  test::TemporaryFolder temporary;
  explicit Folder(const char* config) { test::write_file(path() / "config.json", config); }
  std::filesystem::path path() const { return temporary / "model"; }
};

Tensor some_tokens(int64_t n) { return at::randint(0, 96, {n}, at::TensorOptions().dtype(at::kLong)); }

Tensor logits(const Model& model, const Tensor& tokens, std::vector<int64_t> cu_seqlens) {
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over(std::move(cu_seqlens));
  return model.head().logits(model.forward({tokens}, pass).hidden, pass);
}

// The same through a cache, in pieces of the given sizes.
Tensor cached(const Model& model, const Tensor& tokens, const std::vector<int64_t>& pieces) {
  const at::NoGradGuard no_gradient;
  const auto cache = model.make_cache(2, 4);
  std::vector<Tensor> out;
  int64_t begin = 0;
  for (const int64_t piece : pieces) {
    const auto memory = cache->next({1}, {piece});
    nn::Pass pass = nn::Pass::next(*memory);
    out.push_back(model.head().logits(model.forward({tokens.slice(0, begin, begin + piece)}, pass).hidden, pass));
    begin += piece;
  }
  return at::cat(out);
}

struct Invariant {
  const char *config, *dtype, *quantization = nullptr;
};
class Invariance : public testing::TestWithParam<Invariant> {};

TEST_P(Invariance, OfATokensLogitsInAnyCompany) {
  const Folder folder(GetParam().config);
  LoadOptions options;
  options.dtype = dtype_setting(GetParam().dtype, "dtype");
  if (const char* const method = GetParam().quantization)
    options.quantization = {.format = quant::format_of({.method = method}, "quantization")};
  const auto model = load_model(folder.path(), options);
  const Tensor a = some_tokens(21), b = some_tokens(13);
  const Tensor alone = logits(*model, a, {0, 21});
  EXPECT_TRUE(logits(*model, at::cat({b, a}), {0, 13, 34}).slice(0, 13, 34).equal(alone)) << "in a batch";
  EXPECT_TRUE(cached(*model, a, {21}).equal(alone)) << "by a cache, whole";
  EXPECT_TRUE(cached(*model, a, {5, 1, 12, 3}).equal(alone)) << "by a cache, in pieces";
  EXPECT_TRUE(cached(*model, a, std::vector<int64_t>(21, 1)).equal(alone)) << "by a cache, one by one";
  const tensor::Threads two(2);
  EXPECT_TRUE(logits(*model, a, {0, 21}).equal(alone)) << "by two threads";
}

INSTANTIATE_TEST_SUITE_P(All, Invariance,
                         testing::Values(Invariant{small_llama, "fp32"}, Invariant{small_llama, "bf16"},
                                         Invariant{small_gpt2, "fp32"}, Invariant{small_gpt2, "bf16"},
                                         Invariant{small_llama, "fp32", "8bit"}, Invariant{small_llama, "bf16", "8bit"},
                                         Invariant{small_llama, "fp32", "nf4"}, Invariant{small_llama, "bf16", "nf4"},
                                         Invariant{small_gpt2, "fp32", "a8q"}, Invariant{small_gpt2, "bf16", "a4q"}));

std::map<std::string, Tensor> gradients(const char* config, nn::CheckpointPolicy checkpointing) {
  const Folder folder(config);
  LoadOptions options;
  options.training = true;
  const auto model = load_model(folder.path(), options);
  nn::Pass pass = nn::Pass::over({0, 9, 20});
  pass.activations().checkpointing = std::move(checkpointing);
  pass.random().training = true;  // gpt2 drops a tenth
  pass.random().seed = 3;
  const Tensor tokens = at::arange(20, at::TensorOptions().dtype(at::kLong));
  const Tensor hidden = model->forward({tokens}, pass).hidden;
  model->head().score(hidden, tokens, pass).logps.mean().backward();
  std::map<std::string, Tensor> out;
  for (const nn::Entry& entry : model->parameters().entries()) out[entry.path] = entry.shard.grad();
  return out;
}

class Checkpointed : public testing::TestWithParam<const char*> {};

TEST_P(Checkpointed, GradientsAreThoseOfAPlainPassToTheBit) {
  const auto plain = gradients(GetParam(), nn::Checkpointing::none);
  const std::vector<std::string> targets = {"attn_query", "attn_qkv",          "attn_dense",
                                            "mlp_up",     "moe_router_logits", "residual"};
  for (const auto& choice : choices(nn::GradientCheckpointing{})) {
    const auto found = gradients(GetParam(), nn::checkpoint_policy(choice.value, targets));
    for (const auto& [name, gradient] : plain) {
      ASSERT_TRUE(gradient.defined()) << name;
      EXPECT_TRUE(gradient.equal(found.at(name))) << choice.name << ": " << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Checkpointed, testing::Values(small_llama, small_gpt2, small_moe));

// A layer keeps a stack of tensors; a policy that names one more must keep more memory until the backward.
TEST(Checkpointing, KeepsTheTensorsThatItsPolicyNames) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "it asks malloc what is in use, and AddressSanitizer's does not say";
#endif
  const auto held = [](const nn::CheckpointPolicy& policy) {
    const Folder folder(small_llama);
    LoadOptions options;
    options.training = true;
    const auto model = load_model(folder.path(), options);
    nn::Pass pass = nn::Pass::over({0, 2000});
    pass.activations().checkpointing = policy;
    const Tensor tokens = at::arange(2000, at::TensorOptions().dtype(at::kLong)).remainder(96);
    const auto before = mallinfo2();
    const Tensor hidden = model->forward({tokens}, pass).hidden;
    const auto after = mallinfo2();
    return int64_t(after.uordblks + after.hblkhd) - int64_t(before.uordblks + before.hblkhd);
  };
  const auto only = [](std::vector<std::string> names) {
    return nn::checkpoint_policy(nn::GradientCheckpointing::save_only_these_names, std::move(names));
  };
  held(nn::Checkpointing::nothing_saveable);  // memory that a process allocates once
  const int64_t nothing = held(nn::Checkpointing::nothing_saveable), up = held(only({"mlp_up"}));
  const int64_t row = 2000 * 3 * 4;  // of one number of a token, in three layers
  EXPECT_NEAR(double(up - nothing), 64.0 * row, 16.0 * row);
  EXPECT_NEAR(double(held(only({"mlp_up", "mlp_gate"})) - up), 64.0 * row, 16.0 * row);
  EXPECT_NEAR(double(held(only({"attn_dense"})) - nothing), 54.0 * row, 16.0 * row);
  EXPECT_NEAR(double(held(only({"residual", "layer_output"})) - nothing), 0.0, 16.0 * row) << "no op takes these";
  EXPECT_GT(held(nn::Checkpointing::none),
            held(nn::checkpoint_policy(nn::GradientCheckpointing::dots_saveable, std::nullopt)));
}

TEST(Families, AreNamedForConfigurationsAsTheyAreBuilt) {
  std::vector<std::string_view> built, named;
  for (const Family& family : families()) built.push_back(family.model_type);
  for (const FamilyConfig& family : family_configs()) named.push_back(family.model_type);
  EXPECT_EQ(built, named);
}

TEST(SaveModel, IsLoadedAgainWithTheSameBitsAndTheUsersKeys) {
  for (const char* config : {small_llama, small_gpt2}) {
    const Folder folder(config), copy("{}");
    const auto model = load_model(folder.path(), {});
    save_model(*model, copy.path());
    const auto again = load_model(copy.path(), {});
    for (const nn::Entry& entry : model->parameters().entries())
      EXPECT_TRUE(again->parameters().find(entry.path)->shard.equal(entry.shard)) << entry.path;
    const Value* note = again->config().find("note_of_mine");
    EXPECT_EQ(note != nullptr, config == small_llama);
  }
}

TEST(SaveModel, WritesGpt2sWeightsAsItsCheckpointsHoldThem) {
  const Folder folder(small_gpt2);
  save_model(*load_model(folder.path(), {}), folder.path());
  const auto file = weights::SafetensorsFile::open(folder.path() / "model.safetensors");
  EXPECT_EQ(file->at("transformer.h.0.attn.c_attn.weight").shape, (std::vector<int64_t>{40, 120}));
  EXPECT_FALSE(file->has("lm_head.weight"));
}

TEST(CopyModel, IsFrozenAndDoesNotFollow) {
  const Folder folder(small_llama);
  LoadOptions options;
  options.training = true;
  const auto model = load_model(folder.path(), options);
  const auto reference = copy_model(*model);
  const Tensor tokens = some_tokens(5), before = logits(*model, tokens, {0, 5});
  {
    const at::NoGradGuard no_gradient;
    for (nn::Entry& entry : model->parameters().entries()) {
      entry.shard.mul_(1.1);
      entry.written();
    }
  }
  EXPECT_TRUE(logits(*reference, tokens, {0, 5}).equal(before));
  EXPECT_FALSE(logits(*model, tokens, {0, 5}).equal(before));
  for (const nn::Entry& entry : reference->parameters().entries()) EXPECT_FALSE(entry.shard.requires_grad());
}

TEST(LoadModel, StartsFromTheSameRandomValuesForTheSameSeed) {
  const Folder folder(small_llama);
  LoadOptions one, other;
  other.seed = 1;
  const auto weight = [&](const LoadOptions& options) {
    return load_model(folder.path(), options)->parameters().find("model.layers.1.mlp.up_proj.weight")->shard;
  };
  EXPECT_TRUE(weight(one).equal(weight(one)));
  EXPECT_FALSE(weight(one).equal(weight(other)));
  EXPECT_NEAR(weight(one).std().item<double>(), 0.2, 0.02);
}

// Writes the weights of a folder again, each under another name; an empty name leaves it out.
void rename_weights(const std::filesystem::path& folder,
                    const std::function<std::string(const std::string&)>& renamed) {
  std::vector<weights::OutTensor> out;
  {
    const auto file = weights::SafetensorsFile::open(folder / "model.safetensors");
    for (const auto& [name, entry] : file->header().tensors)
      if (const std::string other = renamed(name); !other.empty())
        out.push_back(tensor::to_file(other, tensor::from_view(file->at(name)).clone(), at::kFloat));
  }
  weights::write_safetensors(folder / "model.safetensors", out);
}

TEST(LoadModel, TakesNamesWithoutTheBasesPrefixAndLeavesOldBuffersAlone) {
  const Folder folder(small_gpt2);
  const auto model = load_model(folder.path(), {});
  save_model(*model, folder.path());
  rename_weights(folder.path(),
                 [](const std::string& name) { return name.substr(std::string("transformer.").size()); });
  const Tensor tokens = some_tokens(5);
  EXPECT_TRUE(logits(*load_model(folder.path(), {}), tokens, {0, 5}).equal(logits(*model, tokens, {0, 5})));
}

TEST(LoadModel, TakesATiedEmbeddingFromTheHeadsName) {
  const std::string config = test::replaced(small_llama, "\"note_of_mine\": [1, 2]", "\"tie_word_embeddings\": true");
  const Folder folder(config.c_str());
  const auto model = load_model(folder.path(), {});
  save_model(*model, folder.path());
  rename_weights(folder.path(),
                 [](const std::string& name) { return name == "model.embed_tokens.weight" ? "lm_head.weight" : name; });
  const Tensor tokens = some_tokens(5);
  EXPECT_TRUE(logits(*load_model(folder.path(), {}), tokens, {0, 5}).equal(logits(*model, tokens, {0, 5})));
}

TEST(ProbeLogits, TracesEveryModuleAndEveryNamedTensor) {
  const Folder folder(small_llama);
  test::TemporaryFolder work;
  const std::vector<weights::OutTensor> inputs = {
      tensor::to_file("input_ids", some_tokens(12).view({2, 6}), at::kLong)};
  weights::write_safetensors(work / "in.safetensors", inputs);
  probe::LogitsOptions options;
  options.trace = work / "trace.safetensors";
  probe::logits(folder.path(), work / "in.safetensors", work / "out.safetensors", options);
  const auto trace = weights::SafetensorsFile::open(work / "trace.safetensors");
  for (const char* name :
       {"embeddings", "model.norm", "model.layers.0", "model.layers.2.self_attn", "model.layers.1.mlp",
        "model.layers.1.attn_query", "model.layers.1.attn_key", "model.layers.1.attn_value",
        "model.layers.1.attn_output", "model.layers.1.mlp_gate", "model.layers.1.mlp_up", "model.layers.1.mlp_down",
        "model.layers.1.mlp_output", "model.layers.1.residual"})
    EXPECT_TRUE(trace->has(name)) << name;
  EXPECT_EQ(trace->at("model.layers.1.mlp_up").shape, (std::vector<int64_t>{2, 6, 64}));
}

// ---- errors ----

std::string refusal_of(const Folder& folder, const LoadOptions& options = {}) {
  return test::replaced(test::refusal([&] { load_model(folder.path(), options); }), folder.path().string(), "M");
}

TEST(LoadModel, NamesEveryTensorThatDoesNotFitAtOnce) {
  const Folder folder(small_llama);
  save_model(*load_model(folder.path(), {}), folder.path());
  test::write_file(folder.path() / "config.json",
                   test::replaced(test::replaced(small_llama, "\"num_hidden_layers\": 3",
                                                 "\"num_hidden_layers\": 2, \"attention_bias\": true"),
                                  "\"intermediate_size\": 64", "\"intermediate_size\": 60"));
  const std::string text = refusal_of(folder);
  EXPECT_EQ(text.substr(0, text.find("\n      ")), "M: the weights do not fit config.json\n    missing (8):");
  EXPECT_NE(text.find("\n      model.layers.1.self_attn.o_proj.bias"), std::string::npos);
  EXPECT_NE(text.find("    wrong shape (6):\n      model.layers.0.mlp.gate_proj.weight: the file has [64, 48], "
                      "config.json requires [60, 48] by intermediate_size\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("    not in the model (9):\n      model.layers.2.input_layernorm.weight"), std::string::npos);
}

TEST(LoadModel, RefusesWhatItCannotBuild) {
  const auto with = [](const std::string& from, const std::string& to) {
    const std::string config = test::replaced(small_llama, from, to);
    return refusal_of(Folder(config.c_str()));
  };
  EXPECT_EQ(with("\"llama\"", "\"lama\""),
            "M/config.json: model_type: 'lama' is not built yet\n    did you mean 'llama'?");
  EXPECT_EQ(with("LlamaForCausalLM", "LlamaForMultipleChoice"),
            "M/config.json: architectures: 'LlamaForMultipleChoice' is not built yet\n    built for 'llama': "
            "LlamaForCausalLM, "
            "LlamaModel, LlamaForSequenceClassification, LlamaForTokenClassification, LlamaForQuestionAnswering");
  EXPECT_EQ(
      with("\"note_of_mine\"", "\"quantization_config\""),
      "M/config.json: quantization_config: [1, 2] is not a mapping\n    read: auto-round, awq, bitnet, bitsandbytes, "
      "compressed-tensors, fbgemm_fp8, fp8, gptq, modelopt, mxfp4; or load the unquantized model");
  EXPECT_EQ(with("\"hidden_size\": 48", "\"hidden_size\": \"wide\""),
            "M/config.json: hidden_size: \"wide\" is not an integer");
  EXPECT_EQ(with("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4"),
            "M/config.json: num_key_value_heads: 4 does not divide num_attention_heads, 6");
  EXPECT_EQ(with("\"note_of_mine\": [1, 2]", "\"hidden_act\": \"prelu\""),
            "M/config.json: hidden_act: 'prelu' is not a known activation\n    known: silu, swish, gelu, gelu_python, "
            "gelu_10, gelu_new, gelu_pytorch_tanh, gelu_fast, gelu_python_tanh, gelu_accurate, quick_gelu, relu, "
            "relu2, relu6, leaky_relu, sigmoid, tanh, mish, hardswish, laplace, sqrtsoftplus, linear");
  EXPECT_EQ(with("\"note_of_mine\": [1, 2]", "\"rope_parameters\": {\"rope_type\": \"axial\"}"),
            "M/config.json: rope_parameters.rope_type: unknown rope type 'axial'\n"
            "    known: default, linear, dynamic, yarn, deepseek_yarn, llama3, longrope, mrope, proportional");
}

TEST(LoadModel, RefusesFoldersAndNumberTypesThatAreNone) {
  const Folder folder(small_llama);
  std::filesystem::remove(folder.path() / "config.json");
  EXPECT_EQ(refusal_of(folder),
            "M: no config.json in this folder\n    a model folder holds config.json and its weights");
  std::filesystem::remove(folder.path());
  EXPECT_EQ(refusal_of(folder), "M: there is no such model folder");
  const Folder good(small_llama);
  LoadOptions options;
  options.dtype = DTypeSetting::mxfp4;
  EXPECT_EQ(refusal_of(good, options), "dtype: 'mxfp4' is not a dtype\n    known: auto, fp32, bf16, fp16");
  options.dtype = DTypeSetting::fp64;
  EXPECT_EQ(refusal_of(good, options),
            "dtype: 'fp64' is not a dtype of the computation\n    known: auto, fp32, bf16, fp16");
  options.dtype = DTypeSetting::fp16;
  options.device = DeviceSetting::cpu;
  options.key_prefix = "loader.";
  EXPECT_EQ(refusal_of(good, options), "loader.dtype: fp16 is for storage only on a CPU\n    use bf16 or fp32");
}

}  // namespace
}  // namespace easydel::models
