// Adapters over weights in codes, merged: into values, into codes, and into the weights before there were codes.
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "easydel/base/log.h"
#include "easydel/models/adapter.h"
#include "easydel/models/model.h"
#include "easydel/nn/weight.h"
#include "easydel/quant/quantize.h"
#include "easydel/weights/safetensors.h"
#include "models/adapter_settings.h"
#include "support/data.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;

const char* const llama = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
  "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96,
  "max_position_embeddings": 64, "initializer_range": 0.2, "tie_word_embeddings": false})";
const char* const query = "model.layers.1.self_attn.q_proj.weight";  // adapted
const char* const down = "model.layers.0.mlp.down_proj.weight";      // in codes alone

nn::Quantization quantization(const char* method) {
  return {.format = quant::format_of({.method = method}, "quantization"),
          .linear_pattern = ".*",
          .where = "quantization.model"};
}

Tensor logits(const Model& model) {
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over({0, 40});
  return model.head().logits(model.forward({at::arange(40, at::kLong)}, pass).hidden, pass);
}

double distance(const Tensor& one, const Tensor& other) { return (one - other).abs().max().item<double>(); }

Tensor value(const Model& model, const std::string& path) {
  return nn::Parameter(model.parameters().find(path)).value().to(at::kFloat);
}

struct MergedCodes : testing::Test {
  MergedCodes() {
    test::write_file(work / "config" / "config.json", llama);
    save_model(*load_model(work / "config", {}), plain);
  }

  LoadOptions options(const char* method, const std::string& init = "random") const {
    LoadOptions out;
    if (method) out.quantization = quantization(method);
    out.adapters = {{.config = test::lora("{r: 3, alpha: 2, target_modules: [q_proj, v_proj], init: " + init + "}")}};
    return out;
  }
  // scale * B A of the adapted layer.
  static Tensor added(const Model& model) {
    const std::string layer = std::string(query).substr(0, std::string(query).size() - 6);
    return at::matmul(value(model, layer + "lora_B.default.weight"), value(model, layer + "lora_A.default.weight")) *
           (2.0 / 3);
  }

  // The bits that are rounded to codes.
  static Tensor merged(const Model& model, const std::string& path = query) {
    const nn::Entry& entry = *model.parameters().find(path);
    return model.adapters().front()->merged(entry, value(model, path), /*shared=*/false,
                                            [](const nn::Entry& own) { return own.shard; });
  }

  static double squares(const Tensor& values) { return values.to(at::kDouble).square().sum().item<double>(); }
  static std::string percent(double part, double whole) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2g %%", 100 * std::sqrt(part / whole));
    return text;
  }
  // What merging into values says of the adapted weights.
  static std::string change_of(const Model& model) {
    double change = 0, all = 0;
    for (const std::string& path : adapted) {
      const Tensor sum = merged(model, path);
      change += squares(sum - value(model, path)), all += squares(sum);
    }
    return "merged into 4 weights, which change by " + percent(change, all);
  }

  static inline const std::vector<std::string> adapted = {
      "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.v_proj.weight",
      "model.layers.1.self_attn.q_proj.weight", "model.layers.1.self_attn.v_proj.weight"};

  test::TemporaryFolder work;
  const fs::path plain = work / "plain";
};

struct InMemory : MergedCodes, testing::WithParamInterface<const char*> {};

TEST_P(InMemory, BecomeValuesOrCodesAndGoBackToTheirBytes) {
  const auto model = load_model(plain, options(GetParam()));
  Adapter& adapter = *model->adapters().front();
  const Tensor base = value(*model, query), before = logits(*model), sum = merged(*model);
  EXPECT_LT(distance(sum, base + added(*model)), 1e-6);
  adapter.merge();
  EXPECT_TRUE(value(*model, query).equal(sum));
  EXPECT_LT(distance(logits(*model), before), 2e-5 * before.abs().max().item<double>());
  adapter.merge();  // it is merged already
  adapter.unmerge();
  EXPECT_TRUE(value(*model, query).equal(base));
  EXPECT_TRUE(logits(*model).equal(before));
  adapter.merge(Adapter::MergeInto::codes);
  EXPECT_TRUE(value(*model, query).equal(quant::rounded(sum, quantization(GetParam()).format)));
  EXPECT_GT(distance(value(*model, query), sum), 1e-3);
  adapter.unmerge();
  EXPECT_TRUE(logits(*model).equal(before));
}

INSTANTIATE_TEST_SUITE_P(Formats, InMemory, testing::Values("nf4", "8bit", "affine"));

TEST_F(MergedCodes, AreSavedAsAPlainModelOfTheValuesThatWereTrainedOver) {
  const auto model = load_model(plain, options("nf4"));
  std::string said;
  log::set_sink([&](log::Level, std::string_view line) { said += line; });
  save_model(*model, work / "merged");
  log::set_sink(nullptr);
  EXPECT_EQ(said, change_of(*model) + " (root mean square)");
  const auto merged = load_model(work / "merged", {});
  EXPECT_FALSE(merged->config().find("quantization_config"));
  EXPECT_LT(distance(value(*merged, query), value(*model, query) + added(*model)), 1e-6);
  EXPECT_TRUE(value(*merged, down).equal(value(*model, down)));
  const Tensor expected = logits(*model);
  EXPECT_LT(distance(logits(*merged), expected), 2e-5 * expected.abs().max().item<double>());
}

TEST_F(MergedCodes, AreSavedInCodesWhereThatIsAskedFor) {
  const auto model = load_model(plain, options("nf4"));
  std::string said;
  log::set_sink([&](log::Level, std::string_view line) { said += line; });
  save_model(*model, work / "merged", DTypeSetting::automatic, default_shard_bytes, {.to_codes = true});
  log::set_sink(nullptr);
  double rounding = 0, all = 0, most = 0;
  std::string most_layer;
  for (const std::string& path : adapted) {
    const Tensor sum = this->merged(*model, path);
    const double own = squares(quant::rounded(sum, quantization("nf4").format) - sum), whole = squares(sum);
    rounding += own, all += whole;
    if (own / whole > most) most = own / whole, most_layer = path.substr(0, path.size() - 7);
  }
  EXPECT_EQ(said, change_of(*model) + "; rounding them to nf4 changes them by " + percent(rounding, all) +
                      ", most in " + most_layer + " (" + percent(most, 1) + ") (root mean square)");
  const auto merged = load_model(work / "merged", {});
  EXPECT_TRUE(value(*merged, query).equal(quant::rounded(this->merged(*model), quantization("nf4").format)));
  EXPECT_TRUE(value(*merged, down).equal(value(*model, down)));
  // A checkpoint in codes is merged into the same bytes.
  LoadOptions coded;
  coded.quantization = quantization("nf4");
  save_model(*load_model(plain, coded), work / "codes");
  const auto kept = load_model(work / "codes", options(nullptr));
  EXPECT_LT(distance(logits(*kept), logits(*model)), 1e-5 * logits(*model).abs().max().item<double>());
  save_model(*kept, work / "again", DTypeSetting::automatic, default_shard_bytes, {.to_codes = true});
  const auto one = weights::SafetensorsFile::open(work / "merged" / "model.safetensors"),
             other = weights::SafetensorsFile::open(work / "again" / "model.safetensors");
  EXPECT_EQ(one->names(), other->names());
  for (const std::string& name : one->names())
    EXPECT_TRUE(std::ranges::equal(one->at(name).bytes, other->at(name).bytes)) << name;
}

TEST_F(MergedCodes, AreSavedOverTheOriginalWeightsWhereThatIsAskedFor) {
  const LoadOptions load = options("nf4");
  const auto model = load_model(plain, load);
  std::string said;
  log::set_sink([&](log::Level, std::string_view line) { said += line; });
  save_model(*model, work / "merged", DTypeSetting::automatic, default_shard_bytes,
             merge_options(*model, load, {.base = MergeBase::original}));
  log::set_sink(nullptr);
  const auto merged = load_model(work / "merged", {}), original = load_model(plain, {});
  double differ = 0, all = 0;
  for (const nn::Entry& entry : model->parameters().entries()) {
    if (entry.shard.defined()) continue;
    const Tensor codes = value(*model, entry.path);
    differ += squares(value(*original, entry.path) - codes), all += squares(codes);
  }
  EXPECT_NE(said.find("; the original weights differ from those that the adapter was trained over by " +
                      percent(differ, all) + " (root mean square)"),
            std::string::npos)
      << said;
  EXPECT_LT(distance(value(*merged, query), value(*original, query) + added(*model)), 1e-6);
  EXPECT_TRUE(value(*merged, down).equal(value(*original, down)));
}

// What is merged in memory is not merged once more when it is saved.
TEST_F(MergedCodes, AreMergedOnce) {
  for (const char* method : {(const char*)nullptr, "nf4"}) {
    const auto model = load_model(plain, options(method));
    const Tensor expected = logits(*model);
    model->adapters().front()->merge();
    save_model(*model, work / "merged");
    EXPECT_LT(distance(logits(*load_model(work / "merged", {})), expected), 2e-5 * expected.abs().max().item<double>());
  }
}

TEST_F(MergedCodes, SayWhatCannotBe) {
  const auto refused = [&](const fs::path& folder, const LoadOptions& load, const MergeKeys& keys) {
    const auto model = load_model(folder, load);
    return test::replaced(test::refusal([&] { merge_options(*model, load, keys); }), work.path().string(), "W");
  };
  EXPECT_EQ(refused(plain, options(nullptr), {.to_codes = true}),
            "lora.merge_to_codes: the model has no weights in codes, so an adapter cannot be merged into codes\n    "
            "leave it out, or give the format of its codes in quantization.model");
  EXPECT_EQ(refused(plain, options("affine"), {.to_codes = true}),
            "lora.merge_to_codes: no file format holds the codes of affine4, whose zeros are fractions\n    choose "
            "another format, or save the model without quantization.model");
  EXPECT_EQ(refused(plain, options("nf4", "pissa"), {.base = MergeBase::original}),
            "lora.merge_base: an adapter that started as pissa has a part of the original weights in it, and cannot be "
            "added to them\n    leave it out");
  LoadOptions coded;
  coded.quantization = quantization("mxfp4");
  save_model(*load_model(plain, coded), work / "codes");
  EXPECT_EQ(refused(work / "codes", options(nullptr), {.base = MergeBase::original}),
            "lora.merge_base: the weights of W/codes are codes, so the original ones are not known\n    leave it out, "
            "or merge the adapter into the unquantized model: easydel merge");
  EXPECT_EQ(refused(work / "codes", options(nullptr), {.to_codes = true}),
            "lora.merge_to_codes: merging into codes of compressed-tensors, mxfp4 is not built yet "
            "(model.layers.0.self_attn.q_proj)\n    leave it out, and write the merged model in codes by easydel "
            "quantize");
  EXPECT_EQ(test::refusal([&] {
              load_model(work / "codes", options(nullptr))->adapters().front()->merge(Adapter::MergeInto::codes);
            }),
            "lora: merging into the codes of a file is not built yet (model.layers.0.self_attn.q_proj)\n    merge into "
            "values, or make the codes by quantization.model");
}

}  // namespace
}  // namespace easydel::models
