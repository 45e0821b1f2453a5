// Bad checkpoints in codes: one clear error each. What good ones give is tested in
// tests/models/coded_checkpoint_test.cpp.
#include "easydel/quant/coded_folder.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/quant/file_format.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::quant {
namespace {

using weights::DType;

struct StoredTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::string bytes = {};  // empty: zeros
};

std::string integers(std::vector<int32_t> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t)};
}

CodedFolder opened(const test::TemporaryFolder& folder, const std::vector<StoredTensor>& tensors,
                   const std::string& quantization) {
  std::vector<weights::OutTensor> out;
  for (const StoredTensor& tensor : tensors) {
    std::string bytes = tensor.bytes;
    if (bytes.empty())
      bytes.resize(size_t(*weights::bytes_of_shape(tensor.shape, weights::size_of(tensor.dtype))), '\0');
    out.push_back(
        {tensor.name, tensor.dtype, tensor.shape, [bytes](const auto& sink) { sink(bytes.data(), bytes.size()); }});
  }
  weights::write_safetensors(folder / "model.safetensors", out);
  return open_coded(folder.path(), parse_json("{\"quantization_config\": " + quantization + "}"),
                    FilePlace{"config.json"});
}

// What opening such a folder says; empty: it is read, and its scales are sound.
std::string refusal(const std::vector<StoredTensor>& tensors, const std::string& quantization = "null") {
  const test::TemporaryFolder folder;
  const std::string text = test::refusal([&] {
    const CodedFolder codes = opened(folder, tensors, quantization);
    for (const auto& [name, weight] : codes.all_codes()) weight->check_scales();
  });
  return text == "(nothing was refused)" ? "" : test::replaced(text, folder.path().string() + "/", "");
}

const std::string again = "\n    fetch the file again, or load the unquantized model";

const std::string small_gptq = R"({"quant_method": "gptq", "bits": 4, "group_size": 32})";

std::vector<StoredTensor> gptq() {
  return {{"a.qweight", DType::i32, {8, 16}},
          {"a.qzeros", DType::i32, {2, 2}},
          {"a.scales", DType::f16, {2, 16}},
          {"a.g_idx", DType::i32, {64}, [] {
             std::vector<int32_t> groups;
             for (int32_t i = 0; i < 64; ++i) groups.push_back(i / 32);
             return integers(groups);
           }()}};
}

TEST(CodedFolder, ShowsValuesInsteadOfCodes) {
  const test::TemporaryFolder folder;
  auto tensors = gptq();
  tensors.push_back({"a.bias", DType::f16, {16}});
  tensors.push_back({"a.k_scale", DType::f32, {1}});
  const CodedFolder codes = opened(folder, tensors, small_gptq);
  EXPECT_EQ(codes.names(), (std::vector<std::string>{"a.bias", "a.weight"}));
  EXPECT_EQ(codes.info("a.weight").shape, (std::vector<int64_t>{16, 64}));
  const auto weight = codes.codes("a.weight");
  EXPECT_EQ(weight->format, "gptq, 4 bits, groups of 32");
  EXPECT_EQ(weight->bytes(), 8 * 16 * 4 + 2 * 2 * 4 + 2 * 16 * 2 + 64 * 4 + 4);
  EXPECT_FALSE(codes.codes("a.bias"));
}

TEST(CodedFolder, RefusesTensorsThatDoNotFitTogether) {
  const auto with = [](size_t index, StoredTensor tensor) {
    auto tensors = gptq();
    tensors[index] = std::move(tensor);
    return refusal(tensors, small_gptq);
  };
  EXPECT_EQ(refusal(gptq(), small_gptq), "");
  EXPECT_EQ(with(1, {"a.qzeros", DType::i32, {2, 3}}),
            "model.safetensors: a.qzeros: has codes of 6 bits; 2, 4 and 8 are read" + again);
  auto tensors = gptq();
  tensors.erase(tensors.begin() + 2);
  EXPECT_EQ(refusal(tensors, small_gptq), "a.scales: is missing, and a has other tensors in codes" + again);
  EXPECT_EQ(with(0, {"a.qweight", DType::i32, {4, 16}}),
            "config.json: quantization_config.group_size: is 32, but the tensors of a have 16\n"
            "    correct it, or fetch the files again");
  EXPECT_EQ(with(0, {"a.qweight", DType::i64, {8, 16}}),
            "model.safetensors: a.qweight: is I64; codes of this format are I32" + again);
  EXPECT_EQ(with(1, {"a.qzeros", DType::i32, {3, 2}}),
            "model.safetensors: a.qzeros: is 3 x 2; the other tensors require 2 x 2" + again);
  EXPECT_EQ(with(1, {"a.qzeros", DType::i32, {2, 1}}),
            "config.json: quantization_config.bits: is 4, but the tensors of a have 2\n"
            "    correct it, or fetch the files again");
  EXPECT_EQ(with(3, {"a.g_idx", DType::i32, {64}, integers(std::vector<int32_t>(64, 2))}),
            "model.safetensors: a.g_idx: column 0 is in group 2; there are 2 groups" + again);
  EXPECT_EQ(with(3, {"a.g_idx", DType::i32, {64}, integers(std::vector<int32_t>(64, 1))}),
            "model.safetensors: a.g_idx: more than 32 columns are in group 1" + again);
  std::string scales(64, '\0');
  scales[1] = char(0x7e);  // NaN
  EXPECT_EQ(with(2, {"a.scales", DType::f16, {2, 16}, scales}),
            "model.safetensors: a.qweight: scale 0 is nan\n    a scale is a finite number that is not negative; fetch "
            "the file "
            "again");
  scales[1] = char(0x7c), scales[4] = 1, scales[5] = char(0xbc);  // infinite; a number; negative
  EXPECT_EQ(with(2, {"a.scales", DType::f16, {2, 16}, scales}),
            "model.safetensors: a.qweight: scale 0 is inf\n    a scale is a finite number that is not negative; fetch "
            "the file again");
  scales[1] = 0x3c;
  EXPECT_EQ(with(2, {"a.scales", DType::f16, {2, 16}, scales}),
            "model.safetensors: a.qweight: scale 2 is -1.00098\n    a scale is a finite number that is not negative; "
            "fetch the file again");
}

TEST(CodedFolder, RefusesAConfigurationThatContradictsTheTensors) {
  EXPECT_EQ(refusal(gptq(), R"({"quant_method": "gptq", "bits": 8, "group_size": 32})"),
            "config.json: quantization_config.bits: is 8, but the tensors of a have 4\n"
            "    correct it, or fetch the files again");
  EXPECT_EQ(refusal(gptq(), R"({"quant_method": "gptq", "bits": 4, "group_size": 128})"),
            "config.json: quantization_config.group_size: is 128, but the tensors of a have 32\n"
            "    correct it, or fetch the files again");
  EXPECT_EQ(refusal({{"a.weight", DType::f16, {4, 4}}}, small_gptq),
            "config.json: quantization_config: says gptq, but no weight of the folder is in codes\n"
            "    remove quantization_config, or fetch the files again");
  auto twice = gptq();
  twice.push_back({"a.SCB", DType::f32, {4}});
  twice.push_back({"a.weight", DType::i8, {4, 4}});
  EXPECT_EQ(refusal(twice),
            "model.safetensors: a.qweight: a.weight is in codes of two formats, bitsandbytes and gptq\n"
            "    keep the tensors of one of them");
  auto both = gptq();
  both.push_back({"a.weight", DType::f16, {16, 64}});
  EXPECT_EQ(refusal(both), "model.safetensors: a.weight: is there as values and as codes\n    keep one of them");
}

// Four rows of 64 values in words of compressed-tensors.
std::vector<StoredTensor> packed(int64_t words) {
  const int64_t shape[] = {4, 64};
  return {{"a.weight_packed", DType::i32, {4, words}},
          {"a.weight_scale", DType::bf16, {4, 2}},
          {"a.weight_shape", DType::i64, {2}, {reinterpret_cast<const char*>(shape), sizeof shape}}};
}

TEST(CodedFolder, RefusesWordsThatDoNotFit) {
  const auto says = [](std::vector<StoredTensor> tensors, int bits) {
    return refusal(
        tensors,
        str(R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": )",
            R"({"group_0": {"targets": ["Linear"], "weights": {"num_bits": )", bits, R"(, "group_size": 32}}}})"));
  };
  EXPECT_EQ(says(packed(8), 4), "");
  EXPECT_EQ(says(packed(16), 4),
            "config.json: quantization_config.config_groups: num_bits is 4, but a has 16 words for 64 values\n"
            "    correct it, or load the unquantized model");
  EXPECT_EQ(says(packed(12), 6),
            "model.safetensors: a.weight_packed: has codes of 6 bits; 2, 4 and 8 are read" + again);
  auto tensors = packed(8);
  tensors[2] = {"a.weight_shape", DType::i64, {3}};
  EXPECT_EQ(says(tensors, 4), "model.safetensors: a.weight_shape: is not two integers" + again);
  tensors = packed(8);
  tensors[1].shape = {4, 3};
  EXPECT_EQ(says(tensors, 4),
            "model.safetensors: a.weight_scale: is 4 x 3, which does not fit a weight of 4 x 64" + again);
}

TEST(CodedFolder, RefusesGroupsThatDoNotDivideARow) {
  auto tensors = gptq();
  tensors[1].shape = {3, 2}, tensors[2].shape = {3, 16};
  EXPECT_EQ(refusal(tensors, R"({"quant_method": "gptq", "bits": 4})"), "a: has 3 groups in rows of 64 values" + again);
}

TEST(CodedFolder, RefusesTwoDescriptionsOfItsCodes) {
  EXPECT_EQ(refusal(gptq(), small_gptq + R"(, "compression_config": {"quant_method": "gptq"})"),
            "config.json: quantization_config: compression_config describes codes, too\n"
            "    keep the one that fits the weights");
}

TEST(CodedWeight, RefusesOffsetsThatAreNotFinite) {
  CodedWeight weight;
  weight.where = "model.gguf: a";
  weight.scales = 2;
  weight.scale = [](int64_t) { return 1.0f; };
  weight.offset = [](int64_t i) { return i == 1 ? INFINITY : 0.0f; };
  EXPECT_EQ(test::refusal([&] { weight.check_scales(); }),
            "model.gguf: a: offset 1 is inf\n    an offset is a finite number; fetch the file again");
}

TEST(CodedFolder, RefusesMethodsAndLayoutsByName) {
  const auto says = [](const std::string& quantization) { return refusal({{"a", DType::f32, {1}}}, quantization); };
  EXPECT_EQ(
      says(R"({"quant_method": "hqq"})"),
      "config.json: quantization_config.quant_method: 'hqq' is not built yet\n"
      "    read: auto-round, awq, bitnet, bitsandbytes, compressed-tensors, fbgemm_fp8, fp8, gptq, modelopt, mxfp4; or "
      "load the unquantized model");
  const std::string usual =
      " is not built yet\n    load a checkpoint of the same model in the usual layout, or the unquantized model";
  EXPECT_EQ(says(R"({"quant_method": "awq", "version": "GEMV"})"),
            "config.json: quantization_config.version: 'gemv'" + usual);
  EXPECT_EQ(says(R"({"quant_method": "gptq", "checkpoint_format": "marlin"})"),
            "config.json: quantization_config.checkpoint_format: 'marlin'" + usual);
  EXPECT_EQ(says(R"({"quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-24-bitmask"}})"),
            "config.json: quantization_config.sparsity_config.format: 'sparse-24-bitmask'" + usual);
  EXPECT_EQ(says(R"({"bits": 4})").substr(0, 57), "config.json: quantization_config.quant_method: is missing");
}

TEST(CodedFolder, RefusesIncompleteDoubleQuantization) {
  const std::string state = R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [4, 32]})";
  const auto says = [](const std::string& json, DType absmax, int64_t blocks) {
    return refusal({{"a.weight", DType::u8, {64, 1}},
                    {"a.weight.absmax", absmax, {blocks}},
                    {"a.weight.quant_map", DType::f32, {16}},
                    {"a.weight.quant_state.bitsandbytes__nf4", DType::u8, {int64_t(json.size())}, json}});
  };
  EXPECT_EQ(says(state, DType::f32, 2), "");
  EXPECT_EQ(says(state, DType::f32, 3),
            "model.safetensors: a.weight.absmax: is 3; the other tensors require 2" + again);
  EXPECT_EQ(says(state, DType::u8, 2),
            "model.safetensors: a.weight.absmax: is codes, but the quant_state has no nested_blocksize" + again);
  const std::string nested =
      R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [4, 32], "nested_blocksize": 256})";
  EXPECT_EQ(says(nested, DType::u8, 2), "a.weight.nested_absmax: is missing, and a has other tensors in codes" + again);
  EXPECT_EQ(says(R"({"blocksize": 64, "dtype": "bfloat16", "shape": [4, 64]})", DType::f32, 2),
            "model.safetensors: a.weight: has 64 bytes; a weight of 4 x 64 has 128" + again);
}

TEST(CodedFolder, RefusesABlockGridOfAnotherSize) {
  const auto says = [](std::vector<int64_t> grid) {
    return refusal({{"a.weight", DType::f8_e4m3, {200, 130}}, {"a.weight_scale_inv", DType::f32, std::move(grid)}},
                   R"({"quant_method": "fp8", "weight_block_size": [128, 128]})");
  };
  EXPECT_EQ(says({2, 2}), "");
  EXPECT_EQ(says({2, 3}),
            "model.safetensors: a.weight_scale_inv: is 2 x 3, which does not fit a weight of 200 x 130" + again);
  EXPECT_EQ(
      says({1, 1, 1, 2}),
      "model.safetensors: a.weight_scale_inv: is 1 x 1 x 1 x 2, which does not fit a weight of 200 x 130" + again);
}

TEST(CodedFolder, RefusesScalesOfOtherBlocksOfMxfp4) {
  const weights::TensorView blocks{DType::u8, {2, 3, 16}, {}, {}}, scales{DType::u8, {2, 4}, {}, {}};
  EXPECT_EQ(test::refusal([&] { read_mxfp4("experts", blocks, scales); }),
            "experts: blocks 2 x 3 x 16 and scales 2 x 4 do not belong together\n"
            "    blocks are [..., rows, groups, 16] bytes, scales [..., rows, groups]");
}

TEST(CodedWeight, RoundsToHalfAsTheProcessorDoes) {
  for (const auto& [value, rounded] : std::vector<std::pair<float, float>>{{1.0f + 0x1p-11f, 1.0f},
                                                                           {1.0f + 3 * 0x1p-11f, 1.0f + 0x1p-9f},
                                                                           {0x1.8p-25f, 0x1p-24f},
                                                                           {0x1p-25f, 0.0f},
                                                                           {65519.0f, 65504.0f},
                                                                           {-65520.0f, -INFINITY},
                                                                           {0x1.ffep-15f, 0x1p-14f}})
    EXPECT_EQ(std::bit_cast<uint32_t>(rounded_to(value, DType::f16)), std::bit_cast<uint32_t>(rounded)) << value;
}

TEST(CodedWeight, ReadsEveryHalfAndFp8) {
  EXPECT_EQ(half_value(0x3c00), 1.0f);
  EXPECT_EQ(half_value(0x8001), -0x1p-24f);
  EXPECT_EQ(half_value(0xfc00), -INFINITY);
  EXPECT_EQ(e4m3_value(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(e4m3_value(0xff)));
  EXPECT_EQ(e5m2_value(0x7b), 57344.0f);
  EXPECT_EQ(e8m0_value(0), 0x1p-127f);
  EXPECT_TRUE(std::isnan(e8m0_value(255)));
}

}  // namespace
}  // namespace easydel::quant
