// Codes that are converted to another format while a model is loaded (quantization.model.runtime_dtype).
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/base/log.h"
#include "easydel/models/model.h"
#include "easydel/nn/weight.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/quant/coded_folder.h"
#include "easydel/quant/quantize.h"
#include "support/data.h"

namespace easydel::models {
namespace {

quant::Format format_of(const char* method) { return quant::format_of({.method = method}, "quantization"); }

// What runtime_dtype alone asks for.
nn::Quantization conversion(const char* method, std::string pattern = "") {
  return {.format = format_of(method),
          .pattern = std::move(pattern),
          .linear_pattern = ".*",
          .where = "quantization.model",
          .of_codes = true};
}

std::shared_ptr<Model> load(const std::filesystem::path& folder, std::optional<nn::Quantization> wanted = {},
                            DTypeSetting dtype = DTypeSetting::fp32, std::string* said = nullptr) {
  LoadOptions options;
  options.quantization = std::move(wanted);
  options.dtype = dtype;
  if (said) log::set_sink([said](log::Level, std::string_view line) { *said += std::string(line) + "\n"; });
  auto model = load_model(folder, options);
  if (said) log::set_sink(nullptr);
  return model;
}

// Of an entry in codes: what products read, in fp32.
Tensor read_values(const Model& model, const std::string& path) {
  const nn::Entry& entry = *model.parameters().find(path);
  return nn::values_of(nn::whole_codes(entry), entry, at::kFloat);
}

Tensor each_rounded(const Tensor& values, const quant::Format& format) {
  if (values.dim() == 2) return quant::rounded(values, format);
  Tensor out = values.clone();
  for (int64_t e = 0; e < values.size(0); ++e) out[e].copy_(quant::rounded(values[e], format));
  return out;
}

Tensor logits(const Model& model) {
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over({0, 20});
  return model.head().logits(model.forward({at::arange(20, at::kLong)}, pass).hidden, pass);
}

class RuntimeDtype : public testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path folder() const { return test::test_data(std::string("codes/") + GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Formats, RuntimeDtype,
                         testing::Values("bnb_nf4", "bnb_nf4_double", "gptq_4_asym_order", "awq_4_mixtral", "ct_fp8",
                                         "gpt_oss_mxfp4"),
                         [](const auto& info) { return info.param; });

// The exact values of the codes, rounded once: in bf16, too, which does not hold them all.
TEST_P(RuntimeDtype, RoundsTheValuesOfCodesOnce) {
  const auto kept = load(folder());
  for (const DTypeSetting dtype : {DTypeSetting::fp32, DTypeSetting::bf16})
    for (const char* const method : {"a8bit", "a4q", "8bit"}) {
      const auto converted = load(folder(), conversion(method), dtype);
      int64_t seen = 0;
      for (const nn::Entry& entry : kept->parameters().entries()) {
        EXPECT_EQ(converted->parameters().find(entry.path)->shard.defined(), entry.shard.defined()) << entry.path;
        if (entry.shard.defined()) continue;
        const Tensor values = read_values(*kept, entry.path);
        EXPECT_TRUE(read_values(*converted, entry.path).equal(each_rounded(values, format_of(method))))
            << entry.path << " in " << method;
        EXPECT_FALSE(read_values(*converted, entry.path).equal(values)) << entry.path;
        ++seen;
      }
      EXPECT_GE(seen, 3);
    }
}

TEST(RuntimeDtypes, ConvertWhatThePatternMatchesAndKeepTheRest) {
  const auto folder = test::test_data("codes/bnb_nf4");
  const auto kept = load(folder);
  std::string said;
  const auto converted = load(folder, conversion("a8bit", "q_proj"), DTypeSetting::fp32, &said);
  EXPECT_NE(said.find("1 weight in codes read in a8bit: "), std::string::npos) << said;
  int64_t changed = 0;
  for (const nn::Entry& entry : kept->parameters().entries()) {
    if (entry.shard.defined()) continue;
    const bool matched = entry.path.find("q_proj") != std::string::npos;
    EXPECT_EQ(read_values(*converted, entry.path).equal(read_values(*kept, entry.path)), !matched) << entry.path;
    changed += matched ? 1 : 0;
  }
  EXPECT_GT(changed, 0);
  EXPECT_EQ(test::refusal([&] { save_model(*converted, "/nowhere"); }).substr(0, 24), "/nowhere: saving model.l");
}

TEST(RuntimeDtypes, AreSavedInTheFormatThatIsRead) {
  const test::TemporaryFolder work;
  const auto converted = load(test::test_data("codes/bnb_nf4"), conversion("a8bit"));
  save_model(*converted, work / "saved");
  const auto read = load(work / "saved");
  for (const nn::Entry& entry : converted->parameters().entries()) {
    if (entry.shard.defined()) continue;
    EXPECT_TRUE(read_values(*read, entry.path).equal(read_values(*converted, entry.path))) << entry.path;
  }
  EXPECT_EQ(read->config().find("quantization_config")->find("quant_method")->scalar, "compressed-tensors");
}

// A plain checkpoint: rounded to quantization_method, and these values to runtime_dtype.
TEST(RuntimeDtypes, RoundTheCodesThatAreMade) {
  const auto folder = test::test_data("models/stories260K-hf");
  const auto plain = load(folder);
  nn::Quantization wanted = conversion("a8bit");
  wanted.of_codes = false;
  const auto direct = load(folder, wanted);
  wanted.stored = format_of("nf4");
  std::string said;
  const auto converted = load(folder, wanted, DTypeSetting::fp32, &said);
  EXPECT_NE(said.find("35 weights in nf4 read in a8bit: "), std::string::npos) << said;
  const std::string path = "model.layers.2.mlp.down_proj.weight";
  const Tensor values = plain->parameters().find(path)->shard;
  const Tensor once = quant::rounded(values, format_of("nf4"));
  EXPECT_TRUE(read_values(*converted, path).equal(quant::rounded(once, format_of("a8bit"))));
  EXPECT_FALSE(read_values(*converted, path).equal(read_values(*direct, path)));
  // The format's products, with activations in bytes.
  const Tensor found = logits(*converted);
  EXPECT_GT((found - logits(*direct)).abs().max().item<double>(), 1e-3);
}

TEST(RuntimeDtypes, SayWhatCannotBe) {
  EXPECT_EQ(test::refusal([] { load(test::test_data("models/stories260K-hf"), conversion("a8bit")); }),
            "quantization.model.runtime_dtype: the weights of " + test::test_data("models/stories260K-hf").string() +
                " are not in codes to be converted\n    give their format as quantization_method");
  const test::TemporaryFolder work;
  test::write_file(work / "config.json", test::read_file(test::test_data("models/stories260K-hf") / "config.json"));
  EXPECT_EQ(test::refusal([&] { load(work.path(), conversion("a8bit")); }),
            "quantization.model.runtime_dtype: the weights of " + work.path().string() +
                " are not in codes to be converted\n    give their format as quantization_method");
}

}  // namespace
}  // namespace easydel::models
