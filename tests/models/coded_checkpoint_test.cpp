// Checkpoints in codes as their libraries write them (tests/data/codes, made by scripts/coded_goldens.py): the decoded
// values, the logits, and that codes stay codes.
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/base/sha256.h"
#include "easydel/models/model.h"
#include "easydel/probe/logits.h"
#include "easydel/quant/coded_folder.h"
#include "easydel/quant/file_format.h"
#include "easydel/quant/quantize.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::models {
namespace {

std::vector<std::string> coded_goldens() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data("codes")))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::string digest(const Tensor& values) {
  const Tensor wide = values.to(at::kFloat).contiguous();
  files::Sha256 sum;
  sum.add(wide.const_data_ptr(), wide.nbytes());
  return sum.hex();
}

Tensor tensor_of(const std::filesystem::path& file, const std::string& name) {
  return tensor::from_view(weights::SafetensorsFile::open(file)->at(name));
}

class CodedCheckpoint : public testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path folder() const { return test::test_data("codes/" + GetParam()); }
};

TEST_P(CodedCheckpoint, DecodesToTheBitsOfItsLibrary) {
  const weights::ConfigFile config = weights::read_config(folder());
  const quant::CodedFolder weights = quant::open_coded(folder(), config.document, config.where);
  const Value expected = parse_file(folder() / "expected.json");
  const auto& digests = expected.find("sha256_of_values")->entries;
  EXPECT_FALSE(digests.empty());
  for (const auto& [name, sum] : digests) {
    if (const auto codes = weights.codes(name)) {
      EXPECT_EQ(digest(quant::values_of(codes)), sum.scalar) << name;
      continue;
    }
    // gpt_oss: transformers' tensors are transposed.
    const auto packed = quant::read_mxfp4(name, weights.at(name + "_blocks"), weights.at(name + "_scales"));
    EXPECT_EQ(digest(quant::values_of(packed).transpose(1, 2)), sum.scalar) << name;
  }
}

TEST_P(CodedCheckpoint, GivesTheLogitsOfTheDecodedModel) {
  const Tensor wanted = tensor_of(folder() / "expected.safetensors", "logits");
  for (const auto& [dtype, tolerance] : {std::pair{DTypeSetting::fp32, 2e-5}, {DTypeSetting::bf16, 0.05}}) {
    const test::TemporaryFolder work;
    probe::LogitsOptions options;
    options.dtype = dtype;
    probe::logits(folder(), folder() / "expected.safetensors", work / "out.safetensors", options);
    const Tensor found = tensor_of(work / "out.safetensors", "logits").to(at::kFloat);
    EXPECT_LE((found - wanted).abs().max().item<double>(), tolerance * wanted.abs().max().item<double>());
  }
}

TEST_P(CodedCheckpoint, KeepsItsCodes) {
  const auto model = load_model(folder(), {});
  const Value expected = parse_file(folder() / "expected.json");
  for (const nn::Entry& entry : model->parameters().entries()) {
    const bool in_codes = std::ranges::any_of(expected.find("sha256_of_values")->entries, [&](const auto& digest) {
      return std::ranges::find(entry.source.found, digest.first) != entry.source.found.end();
    });
    EXPECT_EQ(entry.shard.defined(), !in_codes) << entry.path;
    if (!in_codes) continue;
    EXPECT_EQ(nn::Parameter(model->parameters().find(entry.path)).value().sizes(), at::IntArrayRef(entry.shape));
  }
}

// What a plan of the memory counts before the model is loaded.
TEST_P(CodedCheckpoint, IsCountedAsItsCodes) {
  LoadOptions options;
  options.training = true;
  options.adapters.emplace_back();
  options.adapters.back().config.target_modules = std::string("all-linear");
  const CheckedModel counted = check_model(folder(), options, options.team->mesh());
  const auto model = load_model(folder(), {});
  int64_t elements = 0, bytes = 0;
  for (const nn::Entry& entry : model->parameters().entries())
    if (!entry.shard.defined()) elements += entry.elements();
  const weights::ConfigFile config = weights::read_config(folder());
  const quant::CodedFolder weights = quant::open_coded(folder(), config.document, config.where);
  for (const auto& [name, codes] : weights.all_codes()) bytes += codes->bytes();
  for (const std::string& name : weights.names())
    if (name.ends_with("_blocks") || name.ends_with("_scales")) bytes += int64_t(weights.at(name).bytes.size());
  EXPECT_EQ(counted.coded, elements);
  EXPECT_NEAR(double(counted.coded_bytes), double(bytes), 20);
}

TEST_P(CodedCheckpoint, SavesTheBytesOfItsCodes) {
  const test::TemporaryFolder work;
  save_model(*load_model(folder(), {}), work / "saved");
  const auto original = weights::SafetensorsFile::open(folder() / "model.safetensors");
  const auto saved = weights::SafetensorsFile::open(work / "saved" / "model.safetensors");
  EXPECT_EQ(saved->names(), original->names());
  for (const std::string& name : saved->names()) {
    const weights::TensorView found = saved->at(name), wanted = original->at(name);
    EXPECT_TRUE(found.dtype == wanted.dtype && found.shape == wanted.shape &&
                std::ranges::equal(found.bytes, wanted.bytes))
        << name;
  }
  const Value before = parse_file(folder() / "config.json"), after = parse_file(work / "saved" / "config.json");
  EXPECT_TRUE(*after.find("quantization_config") == *before.find("quantization_config"));
}

// What `easydel merge` needs: values in the dtypes of the file.
TEST_P(CodedCheckpoint, IsDecodedWhereValuesAreAsked) {
  LoadOptions options;
  options.keep_file_types = true;
  const auto decoded = load_model(folder(), options), kept = load_model(folder(), {});
  for (const nn::Entry& entry : decoded->parameters().entries()) {
    ASSERT_TRUE(entry.shard.defined()) << entry.path;
    const nn::Parameter other(kept->parameters().find(entry.path));
    EXPECT_TRUE(entry.shard.to(at::kFloat).allclose(other.value().to(at::kFloat), 1e-2, 1e-5)) << entry.path;
  }
}

// Gradients of an adapter pass through the decoded values.
TEST(CodedCheckpoints, AreBasesOfAdapters) {
  LoadOptions options;
  options.training = true;
  const auto folder = test::test_data("codes/awq_4");
  EXPECT_EQ(
      test::replaced(test::refusal([&] { load_model(folder, options); }), folder.string(), "M"),
      "M: 7 weights are in codes (awq, 4 bits, groups of 32), and codes are not trained: only the other parameters "
      "could be\n    train an adapter over them: the section lora, LoadOptions::adapters");
  options.adapters.emplace_back();
  options.adapters.back().config.target_modules = std::string("all-linear");
  const auto model = load_model(folder, options);
  nn::Pass pass = nn::Pass::over({0, 9});
  model->forward({at::arange(9, at::TensorOptions().dtype(at::kLong))}, pass).hidden.sum().backward();
  int64_t trained = 0;
  for (const nn::Entry& entry : model->parameters().entries())
    if (entry.shard.defined() && entry.shard.requires_grad()) {
      EXPECT_TRUE(entry.adapter && entry.shard.grad().defined()) << entry.path;
      ++trained;
    }
  EXPECT_EQ(trained, 14);
}

TEST(CodedCheckpoints, AreNotQuantizedOnceMore) {
  LoadOptions options;
  options.quantization = nn::Quantization{.format = quant::format_of({.method = "nf4"}, "quantization"),
                                          .linear_pattern = ".*",
                                          .where = "quantization.model"};
  const auto folder = test::test_data("codes/gptq_4");
  EXPECT_EQ(test::replaced(test::refusal([&] { load_model(folder, options); }), folder.string(), "M"),
            "quantization.model: M: 7 weights are in codes (gptq, 4 bits, groups of 32) already\n"
            "    leave the key out, load the unquantized model, or give runtime_dtype alone, which converts the codes");
}

INSTANTIATE_TEST_SUITE_P(Formats, CodedCheckpoint, testing::ValuesIn(coded_goldens()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace easydel::models
