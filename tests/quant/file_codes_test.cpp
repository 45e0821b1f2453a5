#include "easydel/quant/file_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "easydel/base/files.h"
#include "easydel/quant/coded_folder.h"
#include "easydel/tensor/executor.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::quant {
namespace {

std::vector<float> some_values(int64_t count, weights::DType dtype) {
  std::vector<float> out(size_t(count), 0);
  uint32_t state = 3;
  for (float& value : out)
    state = state * 1664525u + 1013904223u, value = rounded_to(float(int32_t(state)) * 0x1p-33f, dtype);
  out[5] = 2;
  return out;
}

// A folder with one weight in codes, as its readers find it.
struct Written {
  test::TemporaryFolder folder;
  std::vector<std::vector<std::byte>> bytes;
  std::shared_ptr<const CodedWeight> weight;
  std::vector<float> values;  // that the codes stand for

  Written(const FileCodesSpec& spec, const std::vector<float>& from, int64_t n, int64_t k) {
    bytes = bytes_of_parts(tensor::executor(), spec, from.data(), n, k);
    const std::vector<CodesPart> parts = parts_of(spec, n, k);
    EXPECT_EQ(parts.size(), bytes.size());
    std::vector<weights::OutTensor> tensors;
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(*weights::bytes_of_shape(parts[i].shape, weights::size_of(parts[i].dtype)), bytes[i].size());
      tensors.push_back({"layer" + parts[i].ending, parts[i].dtype, parts[i].shape,
                         [this, i](const auto& sink) { sink(bytes[i].data(), bytes[i].size()); }});
    }
    weights::write_folder(folder.path(), tensors, uint64_t(1) << 30);
    Value config = Value::map();
    config.set("quantization_config", section_of(spec, {"lm_head"}));
    const CodedFolder opened = open_coded(folder.path(), config, Where{"config.json"});
    weight = opened.codes("layer.weight");
    if (!weight) throw Bug("the codes are not found");
    values.resize(from.size());
    weight->decode(0, 1, n, values.data());
  }
};

// The greatest error of a value, in shares of its group's largest magnitude.
double error_of(FileCodes codes) {
  switch (codes) {
    case FileCodes::nf4:
      return 0.16;
    case FileCodes::fp4:
    case FileCodes::mxfp4:
      return 0.34;
    case FileCodes::w4a16:
      return 0.075;
    case FileCodes::fp8:
      return 0.04;
    default:
      return 0.006;
  }
}

TEST(FileCodes, AreReadBackByTheReadersOfTheirFormat) {
  const int64_t n = 6, k = 128;
  for (const char* word : {"nf4", "fp4", "int8", "w4a16", "fp8", "mxfp4"})
    for (const weights::DType dtype : {weights::DType::bf16, weights::DType::f32, weights::DType::f16}) {
      FileCodesSpec spec{.codes = file_codes(word, "--to"), .group = 64, .dtype = dtype};
      const std::vector<float> from = some_values(n * k, dtype);
      const Written written(spec, from, n, k);
      EXPECT_EQ(written.weight->shape, (std::vector<int64_t>{n, k})) << word;
      for (int64_t i = 0; i < n * k; ++i) {
        float most = 0;
        for (int64_t j = i / k * k; j < (i / k + 1) * k; ++j) most = std::max(most, std::fabs(from[size_t(j)]));
        ASSERT_NEAR(written.values[size_t(i)], from[size_t(i)], error_of(spec.codes) * double(most))
            << word << " " << i;
      }
      // The largest value of its group keeps its size, up to the dtype of scales.
      EXPECT_NEAR(written.values[5], 2, word[0] == 'i' || word[0] == 'w' ? 0.14 : 0.009) << word;
    }
}

// Values that come from codes give the same codes again.
TEST(FileCodes, OfTheirOwnValuesAreTheSame) {
  const int64_t n = 4, k = 64;
  for (const char* word : {"nf4", "fp4", "fp8", "mxfp4"}) {
    const FileCodesSpec spec{.codes = file_codes(word, "--to"), .group = 64, .dtype = weights::DType::f32};
    const Written once(spec, some_values(n * k, weights::DType::f32), n, k);
    const Written twice(spec, once.values, n, k);
    EXPECT_EQ(once.values, twice.values) << word;
  }
}

TEST(FileCodes, SayWhichRowsTheyCannotCut) {
  EXPECT_FALSE(fits({.codes = FileCodes::w4a16, .group = 32}, 172));
  EXPECT_TRUE(fits({.codes = FileCodes::w4a16, .group = 32}, 96));
  EXPECT_FALSE(fits({.codes = FileCodes::mxfp4}, 172));
  EXPECT_TRUE(fits({.codes = FileCodes::nf4}, 173));
  EXPECT_EQ(
      test::refusal([] { file_codes("int3", "--to"); }),
      "--to: 'int3' is not a format of weights that can be written\n    known: nf4, fp4, int8, w4a16, fp8, mxfp4, "
      "q4_0, q8_0");
}

}  // namespace
}  // namespace easydel::quant
