// Policies on whole models: everything that multiplies by a weight asks them, and an adapter of zeros changes no bit.
#include "easydel/nn/weight_policy.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <set>

#include "easydel/models/family.h"
#include "easydel/models/model.h"
#include "models/zero_adapters.h"
#include "support/data.h"

namespace easydel::models {
namespace {

struct Case {
  std::string name, dtype = "auto", quantization = {};
  ops::MoeMethod moe_method = ops::MoeMethod::fused_moe;
};

std::shared_ptr<Model> load(const std::filesystem::path& folder, const Case& of,
                            std::shared_ptr<nn::WeightPolicy> policy) {
  LoadOptions options;
  options.dtype = dtype_setting(of.dtype, "dtype");
  options.moe_method = of.moe_method;
  if (!of.quantization.empty())
    options.quantization = nn::Quantization{.format = quant::format_of({.method = of.quantization}, "quantization")};
  options.weight_policy = std::move(policy);
  return load_model(folder, options);
}

std::shared_ptr<Model> load(const Case& of, std::shared_ptr<nn::WeightPolicy> policy) {
  return load(test::test_data("hf_goldens/" + of.name), of, std::move(policy));
}

Tensor tokens_of(const Model& model, int64_t count) { return at::arange(count, at::kLong) * 7 % model.vocabulary(); }

// Logits of a whole prompt, of a prompt through the cache and of tokens after it, and scores.
std::vector<Tensor> results(const Model& model) {
  const at::NoGradGuard no_gradient;
  const Tensor tokens = tokens_of(model, 12);
  nn::Pass whole = nn::Pass::over({0, 5, 12});
  const Tensor hidden = model.forward({tokens}, whole).hidden;
  if (model.class_head()) return {hidden, model.class_head()->scores(hidden, tokens, whole)};
  if (model.task() == Task::base) return {hidden};
  std::vector<Tensor> out = {model.head().logits(hidden, whole), model.head().score(hidden, tokens, whole).logps};
  if (!model.causal()) return out;
  const auto cache = model.make_cache(1, 12);
  for (const auto& [begin, count] : {std::pair{0, 9}, {9, 1}, {10, 2}}) {
    const auto memory = cache->next({0}, {count});
    nn::Pass pass = nn::Pass::next(*memory, {9});
    out.push_back(model.head().logits(model.forward({tokens.narrow(0, begin, count)}, pass).hidden, pass));
  }
  return out;
}

void PrintTo(const Case& of, std::ostream* to) { *to << of.name << " " << of.dtype << " " << of.quantization; }

// The models that `open` loads, without and with adapters of zeros, give the same bits; returns the policy.
std::shared_ptr<ZeroAdapters> expect_same_bits(
    const std::function<std::shared_ptr<Model>(std::shared_ptr<nn::WeightPolicy>)>& open) {
  const auto policy = std::make_shared<ZeroAdapters>();
  const auto model = open(policy);
  int64_t linear = 0, stacks = 0, embeddings = 0;
  for (const nn::Entry& entry : model->parameters().entries()) {
    linear += nn::is_linear(entry);
    stacks += entry.role == nn::Role::weight && entry.shape.size() == 3 && !entry.adapter;
    embeddings += entry.role == nn::Role::embedding;
  }
  EXPECT_EQ(policy->made["linear"] + policy->made["head"], linear);
  EXPECT_EQ(policy->made["experts"], stacks);
  EXPECT_EQ(policy->made["embedding"], embeddings);
  const auto plain = results(*open(nullptr)), adapted = results(*model);
  EXPECT_EQ(plain.size(), adapted.size());
  for (size_t i = 0; i < std::min(plain.size(), adapted.size()); ++i) {  // as integers, so that -0 and 0 differ
    const auto bits = plain[i].scalar_type() == at::kBFloat16 ? at::kShort : at::kInt;
    EXPECT_TRUE(plain[i].view(bits).equal(adapted[i].view(bits))) << i;
  }
  EXPECT_GT(policy->used["products"], 0);
  EXPECT_GT(policy->used["lookups"], 0);
  EXPECT_EQ(policy->used["stacks"] > 0, stacks > 0);
  return policy;
}

class ZeroAdaptersChangeNoBit : public testing::TestWithParam<Case> {};

TEST_P(ZeroAdaptersChangeNoBit, OfAnyLogits) {
  expect_same_bits([&](std::shared_ptr<nn::WeightPolicy> policy) { return load(GetParam(), std::move(policy)); });
}

INSTANTIATE_TEST_SUITE_P(Models, ZeroAdaptersChangeNoBit,
                         testing::Values(Case{"mixtral", "auto", "", ops::MoeMethod::standard_moe},
                                         Case{"mixtral", "auto", "", ops::MoeMethod::dense_moe},
                                         Case{"llama", "auto", "nf4"}, Case{"llama", "bf16", "8bit"},
                                         Case{"deepseek_v3", "auto", "8bit"}));

// The families that have no golden, with random weights.
std::vector<std::string> configs_without_goldens() {
  std::vector<std::string> out;
  for (const char* more : {R"("model_type": "arctic", "num_local_experts": 4, "moe_layer_frequency": 2)",
                           R"("model_type": "exaone", "num_layers": 4)",
                           R"("model_type": "grok-1", "num_experts": 4, "num_experts_per_tok": 2)",
                           R"("model_type": "internlm2", "bias": false)", R"("model_type": "xerxes")"})
    out.push_back(str(R"({"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 96, "max_position_embeddings": 64, )",
                      more, "}"));
  out.emplace_back(R"({"model_type": "openelm", "activation_fn_name": "swish", "ffn_dim_divisor": 16, "head_dim": 8,
    "ffn_multipliers": [0.5, 1.5], "ffn_with_glu": true, "max_context_length": 64, "model_dim": 32,
    "normalize_qk_projections": true, "num_gqa_groups": 2, "num_transformer_layers": 2, "num_kv_heads": [2, 2],
    "num_query_heads": [4, 4], "qkv_multipliers": [0.5, 1.0], "rope_freq_constant": 10000, "rope_max_length": 128,
    "share_input_output_layers": true, "vocab_size": 96})");
  return out;
}

// Every golden folder, and families without one: each registered family is among them.
TEST(ZeroAdaptersOfEveryFamily, ChangeNoBit) {
  std::set<std::string, std::less<>> seen;
  const auto compare = [&](const std::filesystem::path& folder) {
    for (const char* dtype : {"fp32", "bf16"}) {
      SCOPED_TRACE(folder.filename().string() + " " + dtype);
      expect_same_bits([&](std::shared_ptr<nn::WeightPolicy> policy) {
        const auto model = load(folder, {.name = {}, .dtype = dtype}, std::move(policy));
        seen.insert(model->model_type());
        return model;
      });
    }
  };
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data("hf_goldens"))) compare(entry.path());
  for (const std::string& config : configs_without_goldens()) {
    const test::TemporaryFolder work;
    test::write_file(work / "config.json", config);
    save_model(*load_model(work.path(), {}), work / "model");
    compare(work / "model");
  }
  for (const Family& family : families()) EXPECT_TRUE(seen.contains(family.model_type)) << family.model_type;
}

TEST(WeightPolicies, AreAskedAboutTheHalvesOfEachHeadAndAboutHeads) {
  const auto policy = std::make_shared<ZeroAdapters>();
  results(*load({"deepseek_v3"}, policy));
  EXPECT_GT(policy->used["heads"], 0);
  EXPECT_GT(policy->used["factors"], 0);
  for (const char* tied : {"gemma2", "bert_mlm"}) {
    const auto other = std::make_shared<ZeroAdapters>();
    results(*load({tied}, other));
    EXPECT_EQ(other->made["tied head"], 1) << tied;
    EXPECT_GT(other->used["factors"], 0) << tied;
  }
}

// Code that reads a parameter's values without asking Weight, by role; each has a reason why it gets no adapter.
TEST(WeightPolicies, AreNotAskedAboutRoutersNormsBiasesAndKernelsOfConvolutions) {
  for (const char* name : {"mixtral", "mamba", "gpt_oss"}) {
    const auto policy = std::make_shared<ZeroAdapters>();
    const auto model = load({name}, policy);
    for (const nn::Entry& entry : model->parameters().entries()) {
      const bool product = nn::is_linear(entry) || entry.role == nn::Role::embedding || entry.shape.size() == 3;
      if (entry.adapter || (product && entry.role != nn::Role::other)) continue;
      EXPECT_EQ(model->parameters().find(nn::layer_name(entry) + ".lora_A.weight"), nullptr) << entry.path;
    }
  }
}

// As with a checkpoint: masters in fp32 are for what is trained alone.
TEST(WeightPolicies, RandomValuesThatAreNotTrainedHaveTheDtypeOfTheConfiguration) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "config.json",
                   R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "dtype": "bfloat16",
  "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 64})");
  LoadOptions options;
  options.training = true;
  options.trainable = nn::Trainable::matching("lora_");
  options.weight_policy = std::make_shared<ZeroAdapters>();
  const auto model = load_model(folder.path(), options);
  int64_t products = 0;
  for (const nn::Entry& entry : model->parameters().entries()) {
    const bool product = !entry.adapter && entry.shape.size() == 2;
    products += product ? 1 : 0;
    EXPECT_EQ(entry.shard.scalar_type(), product ? at::kBFloat16 : at::kFloat) << entry.path;
  }
  EXPECT_EQ(products, 9);
}

TEST(WeightPolicies, ParametersOfAreTrainedAndNeverSaved) {
  LoadOptions options;
  options.training = true;
  options.trainable = nn::Trainable::matching("lora_");
  options.weight_policy = std::make_shared<ZeroAdapters>();
  const auto folder = test::test_data("hf_goldens/llama");
  const auto model = load_model(folder, options);
  const Tensor tokens = tokens_of(*model, 12);
  std::vector<std::map<std::string, Tensor>> gradients;
  for (const bool recomputed : {false, true}) {
    nn::Pass pass = nn::Pass::over({0, 12});
    pass.activations().checkpointing = recomputed ? nn::Checkpointing::nothing_saveable : nn::Checkpointing::none;
    const Tensor hidden = model->forward({tokens}, pass).hidden;
    model->head().score(hidden, tokens, pass).logps.mean().backward();
    auto& found = gradients.emplace_back();
    for (nn::Entry& entry : model->parameters().entries()) {
      EXPECT_EQ(entry.trainable, entry.adapter) << entry.path;
      EXPECT_EQ(entry.shard.grad().defined(), entry.adapter) << entry.path;
      if (entry.path.ends_with("_B.weight") || entry.path.ends_with("_B")) {
        EXPECT_GT(entry.shard.grad().abs().max().item<float>(), 0.0f) << entry.path;
      }
      if (entry.adapter) found[entry.path] = entry.shard.grad().clone();
      entry.shard.mutable_grad() = Tensor();
    }
  }
  for (const auto& [path, gradient] : gradients[0])
    EXPECT_TRUE(gradient.allclose(gradients[1].at(path), 1e-5, 1e-7)) << path;
  const test::TemporaryFolder saved;
  save_model(*model, saved / "model");
  const auto again = load_model(saved / "model", {});
  EXPECT_EQ(again->parameters().entries().size(), load_model(folder, {})->parameters().entries().size());
}

// The gradient of a head's second half, against a head whose weight is the sum.
TEST(WeightPolicies, OfAHeadLearnThroughItsChunks) {
  LoadOptions options;
  options.training = true;
  options.weight_policy = std::make_shared<ZeroAdapters>();
  const auto model = load_model(test::test_data("hf_goldens/llama"), options);
  nn::Entry& a = *model->parameters().find("lm_head.lora_A.weight");
  nn::Entry& b = *model->parameters().find("lm_head.lora_B.weight");
  nn::Entry& head = *model->parameters().find("lm_head.weight");
  const Tensor tokens = tokens_of(*model, 40);
  nn::Pass pass = nn::Pass::over({0, 40});
  const Tensor hidden = model->forward({tokens}, pass).hidden.detach();
  for (const int64_t chunk : {0, 16}) {
    model->head().score(hidden, tokens, pass, {.chunk = chunk}).logps.sum().backward();
    // d(W + B A): the head's own gradient, multiplied by A.
    EXPECT_TRUE(b.shard.grad().allclose(head.shard.grad().matmul(a.shard.t()), 1e-4, 1e-4)) << chunk;
    EXPECT_EQ(a.shard.grad().abs().max().item<float>(), 0.0f);
    for (nn::Entry* entry : {&a, &b, &head}) entry->shard.mutable_grad() = Tensor();
  }
}

// Printed, not asserted: the machine's load decides.
TEST(WeightPolicies, CostLittle) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "config.json",
                   R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 768,
    "intermediate_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 12, "num_key_value_heads": 4,
    "vocab_size": 512, "max_position_embeddings": 512, "tie_word_embeddings": false})");
  const auto loaded = [&](std::shared_ptr<nn::WeightPolicy> policy) {
    LoadOptions options;
    options.weight_policy = std::move(policy);
    return load_model(folder.path(), options);
  };
  const auto plain = loaded(nullptr), same = loaded(std::make_shared<nn::WeightPolicy>());
  const auto adapted = loaded(std::make_shared<ZeroAdapters>());
  const at::NoGradGuard no_gradient;
  const auto seconds = [](const Model& model) {
    const Tensor tokens = tokens_of(model, 256);
    const auto begin = std::chrono::steady_clock::now();
    nn::Pass pass = nn::Pass::over({0, 256});
    model.forward({tokens}, pass);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  double best[3] = {1e9, 1e9, 1e9};
  for (int turn = 0; turn < 8; ++turn)
    for (size_t i = 0; i < 3; ++i) best[i] = std::min(best[i], seconds(*(i == 0 ? plain : i == 1 ? same : adapted)));
  std::printf("256 tokens: %.1f ms; with a policy that leaves all as it is %+.1f %%; with zero adapters %+.1f %%\n",
              1e3 * best[0], 100 * (best[1] / best[0] - 1), 100 * (best[2] / best[0] - 1));
}

}  // namespace
}  // namespace easydel::models
