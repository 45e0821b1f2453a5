#include "easydel/quant/quantize.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/tensor/dtype.h"
#include "easydel/tensor/kernels.h"

namespace easydel::quant {

Codes quantize(const Tensor& values, const Format& format) {
  check(values.dim() == 2 && values.is_cpu(), "quantize: the values are ", values.sizes(), " on ",
        values.device().str());
  const Tensor plain = values.detach(), read = tensor::kernels_serve(plain) ? plain : plain.to(at::kFloat).contiguous();
  return std::make_shared<kernels::QuantizedWeight>(
      kernels::quantize(tensor::executor(), tensor::input_of(read), read.size(0), read.size(1), format.spec));
}

Unpacked unpack(const kernels::QuantizedWeight& weight) {
  const bool bytes = weight.spec().codes == kernels::Codes::bytes;
  const Tensor codes = at::empty({weight.n(), weight.k()}, at::TensorOptions().dtype(bytes ? at::kChar : at::kByte));
  const Tensor scales = at::empty({weight.n(), weight.groups()}, at::TensorOptions().dtype(at::kFloat));
  kernels::unpack_codes(tensor::executor(), weight, static_cast<uint8_t*>(codes.mutable_data_ptr()),
                        scales.mutable_data_ptr<float>());
  return {codes.to(at::kLong), scales};
}

namespace {

ops::Matrix encoded(const std::shared_ptr<const CodedWeight>& weight, int64_t n, int64_t first, int64_t step) {
  return {{},
          {},
          nullptr,
          nullptr,
          std::make_shared<kernels::EncodedWeight>(kernels::EncodedWeight{weight, n, first, step})};
}

// Whether kernels know the codes: indices of a table, and groups of whole blocks in a row.
bool kernels_know(const CodedWeight& weight) {
  constexpr int64_t most_columns = 131072;
  const ScaleGrid& grid = weight.grid;
  const bool whole_row = grid.columns >= weight.k();
  return weight.indices && !weight.zero && weight.factor == 1 && grid.group_of_column.empty() &&
         weight.k() <= most_columns && (!grid.flat || weight.k() % grid.columns == 0) &&
         (grid.columns % 32 == 0 || (whole_row && !grid.flat));
}

}  // namespace

ops::Matrix matrix_of(const std::shared_ptr<const CodedWeight>& weight, int64_t n, int64_t first, int64_t step,
                      at::ScalarType compute) {
  if (!kernels_know(*weight) || !(weight->exact || compute == at::kBFloat16)) return encoded(weight, n, first, step);
  const int64_t k = weight->k(), columns = std::min(weight->grid.columns, k), groups = (k + columns - 1) / columns;
  std::vector<uint8_t> codes(size_t(n * k));
  std::vector<float> scales(size_t(n * groups));
  weight->indices(first, step, n, codes.data());
  for (int64_t r = 0; r < n; ++r) {
    const int64_t row = first + r * step;
    const int64_t start = weight->grid.flat ? row * groups : weight->grid.row_index(row);
    const int64_t stride = weight->grid.flat ? 1 : weight->grid.column_stride;
    for (int64_t g = 0; g < groups; ++g) scales[size_t(r * groups + g)] = weight->scale(start + g * stride);
  }
  const kernels::QuantizedSpec spec{kernels::Codes::table4, columns < k ? columns : 0, weight->table};
  return {{},
          {},
          nullptr,
          std::make_shared<kernels::QuantizedWeight>(
              kernels::pack_codes(tensor::executor(), codes.data(), scales.data(), n, k, spec))};
}

Tensor values_of(const std::shared_ptr<const CodedWeight>& weight) {
  const at::ScalarType type = tensor::scalar_type(weight->rounding);
  return ops::decoded(encoded(weight, weight->rows(), 0, 1), type).view(weight->shape);
}

Tensor rounded(const Tensor& values, const Format& format) {
  return ops::dequantized(*quantize(values, format), at::kFloat).to(values.scalar_type());
}

}  // namespace easydel::quant
