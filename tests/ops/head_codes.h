// Output layers in codes, for tests of the ops over heads.
#pragma once

#include <ATen/ops/randn.h>

#include <algorithm>

#include "easydel/ops/quantized_product.h"
#include "easydel/tensor/kernels.h"

namespace easydel::test {

inline ops::Matrix quantized_head(const Tensor& values, kernels::Codes codes) {
  const kernels::QuantizedSpec spec{codes, codes == kernels::Codes::bytes ? 0 : 32, kernels::nf4_table()};
  return {{},
          {},
          nullptr,
          std::make_shared<kernels::QuantizedWeight>(kernels::quantize(
              kernels::serial_executor(), tensor::input_of(values), values.size(0), values.size(1), spec))};
}

// Codes of a file, which stand for these values.
struct FileRows final : kernels::EncodedRows {
  explicit FileRows(Tensor all) : values(std::move(all)) {}
  int64_t k() const override { return values.size(1); }
  void decode(int64_t first, int64_t step, int64_t count, float* to) const override {
    for (int64_t r = 0; r < count; ++r)
      std::copy_n(values.const_data_ptr<float>() + (first + r * step) * k(), k(), to + r * k());
  }

  Tensor values;  // fp32
};

inline ops::Matrix file_head(const Tensor& values) {
  ops::Matrix out;
  out.encoded = std::make_shared<kernels::EncodedWeight>(
      kernels::EncodedWeight{std::make_shared<FileRows>(values), values.size(0), 0, 1});
  return out;
}

}  // namespace easydel::test
