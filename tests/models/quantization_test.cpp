// Models whose linear layers are quantized while they are loaded.
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/nn/weight.h"
#include "easydel/probe/logits.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"
#include "support/memory.h"

namespace easydel::models {
namespace {

nn::Quantization quantization(const char* method, std::string pattern = "", bool simulate = false) {
  return {.format = quant::format_of({.method = method}, "quantization"),
          .pattern = std::move(pattern),
          .linear_pattern = ".*",
          .simulate = simulate,
          .where = "quantization.model"};
}

const char* const llama = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96,
  "max_position_embeddings": 64, "initializer_range": 0.2, "tie_word_embeddings": false})";

struct Folder {
  test::TemporaryFolder temporary;
  explicit Folder(std::string config = llama) { test::write_file(path() / "config.json", config); }
  std::filesystem::path path() const { return temporary / "model"; }
  std::shared_ptr<Model> load(std::optional<nn::Quantization> wanted = {}) const {
    LoadOptions options;
    options.quantization = std::move(wanted);
    return load_model(path(), options);
  }
};

Tensor logits(const Model& model) {
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over({0, 40});
  return model.head().logits(model.forward({at::arange(40, at::TensorOptions().dtype(at::kLong))}, pass).hidden, pass);
}

// The parameters that the model no longer holds as values.
std::vector<std::string> codes_of(const Model& model) {
  std::vector<std::string> out;
  for (const nn::Entry& entry : model.parameters().entries())
    if (!entry.shard.defined()) out.push_back(entry.path);
  std::ranges::sort(out);
  return out;
}

TEST(QuantizedModel, HoldsCodesOfItsLinearLayersAndNoOtherValues) {
  const Folder folder;
  const auto found = codes_of(*folder.load(quantization("nf4")));
  EXPECT_EQ(found.size(), 14u);  // seven of each layer: no embedding, no norm, no head
  for (const std::string& path : found) EXPECT_TRUE(path.find("_proj.weight") != std::string::npos) << path;
  EXPECT_TRUE(codes_of(*folder.load()).empty());
}

TEST(QuantizedModel, TakesTheLayersThatThePatternsName) {
  const Folder folder;
  EXPECT_EQ(codes_of(*folder.load(quantization("8bit", "layers\\.1.*q_proj|lm_head"))),
            (std::vector<std::string>{"lm_head.weight", "model.layers.1.self_attn.q_proj.weight"}));
  // The documents' own default.
  EXPECT_EQ(codes_of(*folder.load(quantization("8bit", "^(?!.*(?:embedding|norm|lm_head)).*$"))).size(), 14u);
  auto both = quantization("8bit", "mlp");
  both.linear_pattern = "layers\\.0";
  EXPECT_EQ(codes_of(*folder.load(both)).size(), 3u);
}

TEST(QuantizedModel, LeavesRoutersAndExpertsAsTheyAre) {
  const auto folder = test::test_data("hf_goldens/mixtral");
  LoadOptions options;
  options.quantization = quantization("8bit", ".*");
  const auto model = load_model(folder, options);
  for (const std::string& path : codes_of(*model))
    EXPECT_TRUE(path.find("self_attn") != std::string::npos || path == "lm_head.weight") << path;
}

TEST(QuantizedModel, TakesExpertsThatThePatternNames) {
  const auto folder = test::test_data("hf_goldens/mixtral");
  const auto load = [&](const char* pattern, bool simulate) {
    LoadOptions options;
    options.dtype = DTypeSetting::fp32;
    options.quantization = quantization("8bit", pattern, simulate);
    return load_model(folder, options);
  };
  const auto coded = load("experts|self_attn", false);
  int64_t stacks = 0;
  for (const nn::Entry& entry : coded->parameters().entries())
    if (entry.shape.size() == 3) stacks += entry.shard.defined() ? -100 : 1;
  EXPECT_GT(stacks, 0);
  const Tensor by_codes = logits(*coded), rounded = logits(*load("experts|self_attn", true));
  EXPECT_TRUE(by_codes.allclose(rounded, 1e-4, 1e-4));
  EXPECT_FALSE(by_codes.allclose(logits(*load("self_attn", true)), 1e-4, 1e-4));
}

// A row of codes is decoded when it is looked up; a tied head reads the same codes.
TEST(QuantizedModel, TakesEmbeddingsThatThePatternNames) {
  for (const bool is_tied : {false, true}) {
    std::string config = llama;
    if (is_tied) config.replace(config.find("\"tie_word_embeddings\": false"), 28, "\"tie_word_embeddings\": true ");
    const Folder folder(config);
    for (const char* method : {"nf4", "8bit", "a8bit"}) {
      const auto coded = folder.load(quantization(method, "embed_tokens"));
      EXPECT_EQ(codes_of(*coded), std::vector<std::string>{"model.embed_tokens.weight"});
      EXPECT_FALSE(coded->parameters().find("model.embed_tokens.weight")->shard.defined());
      if (is_tied && std::string(method) == "a8bit") continue;  // its head rounds activations, too
      const Tensor rounded = logits(*folder.load(quantization(method, "embed_tokens", true)));
      EXPECT_TRUE(logits(*coded).allclose(rounded, 1e-4, 1e-4)) << method;
      EXPECT_FALSE(rounded.allclose(logits(*folder.load()), 1e-3, 1e-3)) << method;
    }
  }
}

// The same numbers as a model whose weights were rounded first: codes lose nothing more.
TEST(QuantizedModel, ComputesWithTheRoundedWeights) {
  const Folder folder;
  for (const char* method : {"nf4", "8bit", "affine", "mxfp4", "nvfp8"}) {
    const Tensor by_codes = logits(*folder.load(quantization(method)));
    const auto rounded = folder.load(quantization(method, "", true));
    EXPECT_TRUE(codes_of(*rounded).empty());
    EXPECT_TRUE(by_codes.allclose(logits(*rounded), 1e-4, 1e-4)) << method;
    EXPECT_FALSE(by_codes.allclose(logits(*folder.load()), 1e-3, 1e-3)) << method;
  }
}

TEST(QuantizedModel, ReadsATiedHeadByCodesWhereThePatternNamesIt) {
  std::string tied = llama;
  tied.replace(tied.find("\"tie_word_embeddings\": false"), 28, "\"tie_word_embeddings\": true ");
  const Folder folder(tied);
  const Tensor plain = logits(*folder.load()), by_codes = logits(*folder.load(quantization("8bit", "lm_head")));
  EXPECT_TRUE(codes_of(*folder.load(quantization("8bit", "lm_head"))).empty()) << "the embedding is still looked up";
  EXPECT_FALSE(by_codes.equal(plain));
  EXPECT_TRUE(by_codes.allclose(plain, 0, 0.05 * plain.abs().max().item<double>()));
}

TEST(QuantizedModel, GivesTheValuesThatItsCodesStandFor) {
  const Folder folder;
  const auto plain = folder.load(), coded = folder.load(quantization("8bit"));
  const std::string path = "model.layers.0.mlp.down_proj.weight";
  const Tensor from = nn::Parameter(plain->parameters().find(path)).value();
  const Tensor found = nn::Parameter(coded->parameters().find(path)).value();
  EXPECT_EQ(found.sizes(), from.sizes());
  EXPECT_TRUE(found.allclose(from, 0, from.abs().max().item<double>() / 127));
}

TEST(QuantizedModel, HoldsOneWeightBesideTheCodesWhileItIsLoaded) {
  const Folder folder(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256,
    "intermediate_size": 512, "num_hidden_layers": 6, "num_attention_heads": 4, "vocab_size": 96})");
  const test::PeakMemory memory;
  const auto model = folder.load(quantization("nf4"));
  int64_t kept = 0, largest = 0, all = 0;
  for (const nn::Entry& entry : model->parameters().entries()) {
    const int64_t bytes = entry.elements() * int64_t(sizeof(float));
    if (entry.shard.defined()) kept += bytes;
    largest = std::max(largest, bytes), all += bytes;
  }
  EXPECT_LE(memory.bytes(), kept + 2 * largest);
  EXPECT_LT(memory.bytes(), all / 8);
}

TEST(QuantizedModel, RefusesWhatIsNotBuilt) {
  const Folder folder;
  LoadOptions options;
  options.quantization = quantization("nf4");
  options.training = true;
  const auto refused = [](const auto& action) { return test::refusal(action); };
  EXPECT_EQ(refused([&] { load_model(folder.path(), options); }),
            "quantization.model: codes are not trained\n"
            "    train an adapter over them: the section lora, LoadOptions::adapters");
  const auto model = folder.load(quantization("nf4"));
  EXPECT_EQ(test::replaced(refused([&] { save_model(*model, folder.temporary / "out"); }),
                           folder.temporary.path().string(), "TMP"),
            "(nothing was refused)");
  EXPECT_EQ(test::replaced(refused([&] { copy_model(*model); }), folder.temporary.path().string(), "TMP"),
            "TMP/model: copying a quantized model is not built yet\n    load it once more");
}

const char* const phi3 = R"({"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "hidden_size": 64,
  "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96,
  "max_position_embeddings": 64, "initializer_range": 0.2, "tie_word_embeddings": false, "pad_token_id": 0})";

struct Format {
  const char* method;
  const char* quant_method;
  bool fused = false, same_logits = true;
};
void PrintTo(const Format& of, std::ostream* to) { *to << of.method << (of.fused ? " fused" : ""); }

class SavedFormat : public testing::TestWithParam<Format> {};

// Written in codes, read back with the same values, and written again with the same bytes.
TEST_P(SavedFormat, IsReadBackWithTheSameValuesAndBytes) {
  const Format& format = GetParam();
  const bool blocks = format.quant_method == std::string("bitsandbytes");
  const Folder folder(format.fused ? phi3 : blocks ? llama : test::replaced(llama, ": 96, \"num_h", ": 128, \"num_h"));
  const std::filesystem::path plain = folder.temporary / "plain";
  save_model(*folder.load(), plain);
  LoadOptions options;
  options.quantization = quantization(format.method);
  const auto model = load_model(plain, options);
  const std::filesystem::path once = folder.temporary / "once", twice = folder.temporary / "twice";
  save_model(*model, once);
  const Value config = parse_file(once / "config.json");
  ASSERT_TRUE(config.find("quantization_config"));
  EXPECT_EQ(config.find("quantization_config")->find("quant_method")->scalar, format.quant_method);
  const auto again = load_model(once, LoadOptions{});
  const auto found = codes_of(*model);
  EXPECT_FALSE(found.empty());
  EXPECT_EQ(codes_of(*again), found);
  for (const std::string& path : found)
    EXPECT_TRUE(
        again->parameters().find(path)->weight->values().equal(model->parameters().find(path)->weight->values()))
        << path;
  if (format.same_logits) {
    const Tensor expected = logits(*model);
    EXPECT_LT((logits(*again) - expected).abs().max().item<double>(), 1e-4 * expected.abs().max().item<double>());
  }
  save_model(*again, twice);
  for (const char* name : {"model.safetensors", "config.json"})
    EXPECT_EQ(test::read_file(once / name), test::read_file(twice / name)) << name;
  const auto tensors = weights::SafetensorsFile::open(once / "model.safetensors");
  const std::string fused = format.quant_method == std::string("bitsandbytes") ? ".weight.absmax" : ".weight_scale";
  EXPECT_EQ(tensors->has("model.layers.0.self_attn.qkv_proj" + fused), format.fused);
}

// Activations of a8bit, a8q and a4q are bytes; those of files are plain.
INSTANTIATE_TEST_SUITE_P(
    Formats, SavedFormat,
    testing::Values(Format{"nf4", "bitsandbytes"}, Format{"fp4", "bitsandbytes"}, Format{"nf4", "bitsandbytes", true},
                    Format{"8bit", "compressed-tensors"}, Format{"8bit", "compressed-tensors", true},
                    Format{"a8bit", "compressed-tensors", false, false},
                    Format{"a8q", "compressed-tensors", false, false},
                    Format{"a4q", "compressed-tensors", false, false}, Format{"a4q", "compressed-tensors", true, false},
                    Format{"mxfp4", "compressed-tensors"}, Format{"mxfp8", "compressed-tensors"},
                    Format{"nvfp4", "compressed-tensors"}, Format{"nvfp8", "compressed-tensors"},
                    Format{"ternary", "compressed-tensors"}, Format{"binary", "compressed-tensors"}));

TEST(QuantizedModel, SaysWhatNoFileHolds) {
  const Folder folder;
  const auto refused = [&](const char* method, const char* pattern) {
    const auto model = folder.load(quantization(method, pattern));
    const std::filesystem::path out = folder.temporary / "out";
    const std::string said = test::refusal([&] { save_model(*model, out); });
    EXPECT_FALSE(std::filesystem::exists(out));
    return test::replaced(said, out.string(), "OUT");
  };
  EXPECT_EQ(refused("affine", ""),
            "OUT: no file format holds the codes of affine4, whose zeros are fractions\n    choose another format, or "
            "save the model without quantization.model");
  EXPECT_EQ(refused("a4q", "down_proj"),
            "OUT: saving model.layers.0.mlp.down_proj, whose rows of 96 groups do not divide, in codes is not built "
            "yet\n    choose other layers (quantization.model.pattern), or save the model without quantization.model");
}

TEST(QuantizedModel, RefusesPatternsThatTakeNothing) {
  const Folder folder;
  LoadOptions options;
  options.quantization = quantization("nf4", "q_project");
  const std::string none =
      "quantization.model.pattern: no linear layer is called as 'q_project' asks\n    one is called "
      "model.layers.1.mlp.down_proj";
  EXPECT_EQ(test::refusal([&] { load_model(folder.path(), options); }), none);
  EXPECT_EQ(test::refusal([&] { check_model(folder.path(), options, mesh::Mesh()); }), none);
  options.quantization = quantization("nf4", "q_proj(");
  EXPECT_EQ(test::refusal([&] { check_model(folder.path(), options, mesh::Mesh()); }),
            "quantization.model.pattern: 'q_proj(' is not a regular expression\n    for example: \"self_attn|mlp\"");
}

// Every family: with four-bit codes it computes the same as with weights rounded to them. With eight bits the
// activations are rounded, too, which costs at most a few times the error of rounding only the weights.
class QuantizedFamily : public testing::TestWithParam<std::string> {};

TEST_P(QuantizedFamily, ComputesWithTheRoundedWeights) {
  const auto folder = test::test_data("hf_goldens/" + GetParam());
  const auto expected = weights::SafetensorsFile::open(folder / "expected.safetensors");
  if (!expected->has("input_ids") || !expected->has("logits")) GTEST_SKIP() << "no logits of tokens";
  test::TemporaryFolder work;
  std::vector<weights::OutTensor> inputs;
  for (const char* name : {"input_ids", "attention_mask", "token_type_ids"}) {
    if (!expected->has(name)) continue;
    const Tensor tensor = tensor::from_view(expected->at(name));
    inputs.push_back(tensor::to_file(name, tensor, tensor.scalar_type()));
  }
  weights::write_safetensors(work / "inputs.safetensors", inputs);
  const auto run = [&](std::optional<nn::Quantization> wanted) {
    probe::LogitsOptions options;
    options.quantization = std::move(wanted);
    probe::logits(folder, work / "inputs.safetensors", work / "out.safetensors", options);
    return tensor::from_view(weights::SafetensorsFile::open(work / "out.safetensors")->at("logits")).clone();
  };
  const Tensor plain = run({}), mask = tensor::from_view(expected->at("attention_mask")).ne(0);
  const bool of_tokens = plain.dim() == 3;
  const auto seen = [&](const Tensor& t) { return of_tokens ? t * mask.unsqueeze(-1) : t; };
  const Tensor codes = run(quantization("nf4")), values = run(quantization("nf4", "", true));
  EXPECT_LT(seen(codes - values).abs().max().item<double>(), 2e-4 * plain.abs().max().item<double>());
  // Over all logits: a token that is routed to another expert differs a lot.
  const auto error = [&](const nn::Quantization& wanted) {
    return (seen(run(wanted) - plain).square().mean() / seen(plain).square().mean()).sqrt().item<double>();
  };
  EXPECT_LT(error(quantization("8bit")), 4 * error(quantization("8bit", "", true)) + 0.05);
}

std::vector<std::string> goldens() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data("hf_goldens")))
    if (const std::string name = entry.path().filename().string(); !name.starts_with("random_")) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedFamily, testing::ValuesIn(goldens()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace easydel::models
