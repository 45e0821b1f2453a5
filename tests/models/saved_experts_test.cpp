// Experts, embeddings and shared output layers in codes that were made while the model was loaded: saved, read back and
// saved again.
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;

const char* const sizes = R"("hidden_size": 64, "intermediate_size": 128, "moe_intermediate_size": 32,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 128,
  "max_position_embeddings": 64, "initializer_range": 0.2, "num_local_experts": 4, "num_experts": 4,
  "num_experts_per_tok": 2, "pad_token_id": 0, "tie_word_embeddings": TIED})";

std::string config_of(const std::string& type, bool tied = false) {
  return test::replaced(str("{\"model_type\": \"", type, "\", ", sizes), "TIED", tied ? "true" : "false");
}

Tensor logits(const Model& model) {
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over({0, 40});
  return model.head().logits(model.forward({at::arange(40, at::kLong)}, pass).hidden, pass);
}

std::vector<std::string> codes_of(const Model& model) {
  std::vector<std::string> out;
  for (const nn::Entry& entry : model.parameters().entries())
    if (!entry.shard.defined()) out.push_back(entry.path);
  std::ranges::sort(out);
  return out;
}

struct Work {
  explicit Work(const std::string& config) {
    test::write_file(folder / "config" / "config.json", config);
    save_model(*load_model(folder / "config", {}), plain);
  }
  std::shared_ptr<Model> coded(const char* method, const char* pattern) const {
    LoadOptions options;
    options.quantization = nn::Quantization{.format = quant::format_of({.method = method}, "quantization"),
                                            .pattern = pattern,
                                            .linear_pattern = ".*",
                                            .where = "quantization.model"};
    return load_model(plain, options);
  }
  std::string refused(const char* method, const char* pattern) const {
    const auto model = coded(method, pattern);
    const std::string said = test::refusal([&] { save_model(*model, folder / "out"); });
    EXPECT_FALSE(fs::exists(folder / "out"));
    return test::replaced(said, (folder / "out").string(), "OUT");
  }

  test::TemporaryFolder folder;
  fs::path plain = folder / "plain", once = folder / "once", twice = folder / "twice";
};

// What `model` is saved as has its values and logits, and the same bytes when it is saved again.
std::shared_ptr<Model> saved_and_read(const Work& work, const Model& model) {
  save_model(model, work.once);
  const auto again = load_model(work.once, {});
  save_model(*again, work.twice);
  for (const char* name : {"model.safetensors", "config.json"})
    EXPECT_EQ(test::read_file(work.once / name), test::read_file(work.twice / name)) << name;
  for (const std::string& path : codes_of(model)) {
    nn::Entry* const found = again->parameters().find(path);
    EXPECT_FALSE(found->shard.defined()) << path;
    EXPECT_TRUE(nn::Parameter(found).value().equal(nn::Parameter(model.parameters().find(path)).value())) << path;
  }
  const Tensor expected = logits(model);
  EXPECT_LT((logits(*again) - expected).abs().max().item<double>(), 1e-4 * expected.abs().max().item<double>());
  return again;
}

struct Case {
  const char* type;
  const char* method;
  const char* tensor;  // of a weight in codes
  const char* quant_method;
};
void PrintTo(const Case& of, std::ostream* to) { *to << of.type << " " << of.method; }

class SavedExperts : public testing::TestWithParam<Case> {};

TEST_P(SavedExperts, AreReadBackWithTheSameValuesAndBytes) {
  const Case& of = GetParam();
  const Work work(config_of(of.type));
  const auto model = work.coded(of.method, "experts");
  const auto again = saved_and_read(work, *model);
  EXPECT_EQ(codes_of(*again), codes_of(*model));
  const auto file = weights::SafetensorsFile::open(work.once / "model.safetensors");
  EXPECT_TRUE(file->has(of.tensor)) << of.tensor;
  EXPECT_EQ(parse_file(work.once / "config.json").find("quantization_config")->find("quant_method")->scalar,
            of.quant_method);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, SavedExperts,
    testing::Values(
        Case{"mixtral", "nf4", "model.layers.0.block_sparse_moe.experts.3.w1.weight.absmax", "bitsandbytes"},
        Case{"mixtral", "8bit", "model.layers.0.block_sparse_moe.experts.3.w2.weight_packed", "compressed-tensors"},
        Case{"mixtral", "mxfp4", "model.layers.1.block_sparse_moe.experts.0.w3.weight_packed", "compressed-tensors"},
        Case{"qwen3_moe", "8bit", "model.layers.1.mlp.experts.0.down_proj.weight_packed", "compressed-tensors"},
        Case{"qwen3_moe", "nvfp4", "model.layers.1.mlp.experts.0.up_proj.weight_global_scale", "compressed-tensors"},
        Case{"gpt_oss", "mxfp4", "model.layers.1.mlp.experts.gate_up_proj_blocks", "mxfp4"}));

TEST(SavedCodes, HoldEmbeddingsOfEightBits) {
  for (const char* const method : {"a8bit", "a8q", "mxfp8", "nvfp8"}) {
    const Work work(config_of("llama"));
    EXPECT_EQ(codes_of(*saved_and_read(work, *work.coded(method, "embed_tokens"))).size(), 1u) << method;
  }
  const Work work(config_of("llama"));
  const auto again = saved_and_read(work, *work.coded("8bit", "embed_tokens|q_proj"));
  EXPECT_EQ(codes_of(*again).size(), 3u);
  const Value config = parse_file(work.once / "config.json");
  const Value& group = *config.find("quantization_config")->find("config_groups")->find("group_1");
  EXPECT_EQ(to_json(*group.find("targets")), "[\"model.embed_tokens\"]");
  EXPECT_EQ(group.find("format")->scalar, "int-quantized");
}

// An output layer that reads the embedding's codes, or has codes of its own, becomes a weight of its own.
TEST(SavedCodes, HoldOutputLayersThatShareTheEmbedding) {
  for (const char* const pattern : {"embed_tokens", "lm_head"}) {
    const Work work(config_of("llama", /*tied=*/true));
    const auto again = saved_and_read(work, *work.coded("8bit", pattern));
    const auto file = weights::SafetensorsFile::open(work.once / "model.safetensors");
    EXPECT_TRUE(file->has("lm_head.weight_packed"));
    EXPECT_EQ(file->has("model.embed_tokens.weight_scale"), pattern == std::string("embed_tokens"));
    EXPECT_EQ(parse_file(work.once / "config.json").find("tie_word_embeddings")->scalar, "false");
  }
}

TEST(SavedCodes, SayWhatNoFileHolds) {
  const std::string remedy =
      "\n    choose other layers (quantization.model.pattern), or save the model without quantization.model";
  const std::string bytes =
      "\n    choose 8bit, other layers (quantization.model.pattern), or save the model without quantization.model";
  const Work llama(config_of("llama")), mixtral(config_of("mixtral"));
  for (const char* const method : {"nf4", "mxfp4", "nvfp4", "ternary"})
    EXPECT_EQ(llama.refused(method, "embed_tokens"),
              str("OUT: transformers loads no embeddings in ", method, " (model.embed_tokens)", bytes));
  for (const char* const method : {"a4q", "mxfp8", "nvfp8"})
    EXPECT_EQ(mixtral.refused(method, "experts"), str("OUT: transformers loads no experts in ", method,
                                                      " (model.layers.0.block_sparse_moe.experts.gate_proj)", bytes));
  const Work granite(config_of("granitemoe"));
  EXPECT_EQ(granite.refused("nf4", "experts"),
            "OUT: saving model.layers.0.block_sparse_moe.experts.gate_proj, whose experts are one tensor of the file, "
            "in codes is not built yet" +
                remedy);
  const Work gpt_oss(config_of("gpt_oss"));
  const std::string alone =
      "\n    choose mxfp4 for the experts alone (quantization.model.pattern: experts), or save the model without "
      "quantization.model";
  EXPECT_EQ(gpt_oss.refused("nf4", "experts"),
            "OUT: no file format holds model.layers.0.mlp.experts.gate_proj in nf4" + alone);
  EXPECT_EQ(
      gpt_oss.refused("mxfp4", "experts|q_proj"),
      "OUT: no file format holds experts in blocks of mxfp4 and model.layers.0.self_attn.q_proj in codes" + alone);
}

// `easydel quantize` writes an expert's layers as linear ones.
TEST(QuantizedFolder, HoldsExpertsInCodes) {
  const Work work(config_of("mixtral"));
  const auto quantized = [&](const std::vector<std::string>& more) {
    fs::remove_all(work.once);
    std::vector<std::string> all = {"quantize", work.plain.string(), "--out", work.once.string()};
    all.insert(all.end(), more.begin(), more.end());
    const test::Ran ran = test::run_program(all);
    EXPECT_EQ(ran.status, 0) << ran.err;
    const auto model = load_model(work.once, {});
    int64_t stacks = 0, layers = 0;
    for (const std::string& path : codes_of(*model))
      (model->parameters().find(path)->shape.size() == 3 ? stacks : layers) += 1;
    const auto plain = load_model(work.plain, {});
    for (const std::string& path : codes_of(*model)) {
      const Tensor expected = nn::Parameter(plain->parameters().find(path)).value();
      const Tensor error = nn::Parameter(model->parameters().find(path)).value() - expected;
      EXPECT_LT(error.abs().mean().item<double>(), 0.15 * expected.abs().mean().item<double>()) << path;
    }
    return std::pair(stacks, layers);
  };
  for (const char* const to : {"w4a16", "int8", "fp8", "mxfp4"})
    EXPECT_EQ(quantized({"--to", to}), std::pair(int64_t{6}, int64_t{8})) << to;
  // transformers 5 reads no experts in bitsandbytes' codes.
  EXPECT_EQ(quantized({"--to", "nf4"}), std::pair(int64_t{0}, int64_t{8}));
  EXPECT_EQ(quantized({"--to", "nf4", "--pattern", "experts"}), std::pair(int64_t{6}, int64_t{0}));
  EXPECT_EQ(quantized({"--to", "int8", "--pattern", "experts.*(gate|up)_proj|experts.*w2"}),
            std::pair(int64_t{6}, int64_t{0}));
}

// gpt_oss's own layout, and what refuses.
TEST(QuantizedFolder, HoldsExpertsInBlocks) {
  const Work work(config_of("gpt_oss"));
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"quantize", work.plain.string(), "--out", work.once.string()};
    all.insert(all.end(), more.begin(), more.end());
    return test::run_program(all);
  };
  const std::string name = "model.layers.0.mlp.experts.down_proj";
  EXPECT_EQ(run({"--to", "int8", "--pattern", "experts"}).err,
            "--pattern: " + name +
                " holds all experts, and no file has codes of such a tensor in int8\n    choose other layers\n");
  EXPECT_EQ(run({"--to", "mxfp4", "--pattern", "experts|q_proj"}).err,
            "--pattern: 'experts|q_proj' names experts, which become blocks of mxfp4, and "
            "model.layers.0.self_attn.q_proj, which is plain in such files\n    name the experts alone: \"experts\"\n");
  ASSERT_EQ(run({"--to", "mxfp4"}).status, 0);
  const auto model = load_model(work.once, {});
  const auto found = codes_of(*model);
  EXPECT_EQ(found.size(), 6u);
  // The same codes as those that are made while the model is loaded.
  const auto made = work.coded("mxfp4", "experts");
  EXPECT_EQ(codes_of(*made), found);
  for (const std::string& path : found)
    EXPECT_TRUE(nn::Parameter(model->parameters().find(path))
                    .value()
                    .equal(nn::Parameter(made->parameters().find(path)).value()))
        << path;
}

}  // namespace
}  // namespace easydel::models
