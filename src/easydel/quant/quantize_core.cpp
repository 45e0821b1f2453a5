#include "easydel/quant/quantize.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/ParallelGuard.h>

#include <algorithm>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/quant/made_codes.h"
#include "easydel/tensor/dtype.h"
#include "easydel/tensor/kernels.h"

namespace easydel::quant {

namespace {

ops::Matrix encoded(const std::shared_ptr<const kernels::EncodedRows>& weight, int64_t n, int64_t first, int64_t step) {
  return {{},
          {},
          nullptr,
          nullptr,
          std::make_shared<kernels::EncodedWeight>(kernels::EncodedWeight{weight, n, first, step})};
}

kernels::CodeShift shift_of(const CodedWeight& weight) {
  return weight.zero     ? kernels::CodeShift::zeros
         : weight.offset ? kernels::CodeShift::offsets
                         : kernels::CodeShift::none;
}

// Whether products by `compute` multiply the codes: indices of a table, and groups of whole blocks in a row.
bool kernels_know(const CodedWeight& weight, at::ScalarType compute) {
  const bool is_exact = weight.exact && shift_of(weight) == kernels::CodeShift::none;
  if (!is_exact && compute != at::kBFloat16) return false;
  constexpr int64_t max_columns = 131072;
  const ScaleGrid& grid = weight.grid;
  const bool whole_row = grid.columns >= weight.k();
  return weight.indices && weight.factor == 1 && grid.group_of_column.empty() && weight.k() <= max_columns &&
         (!grid.flat || weight.k() % grid.columns == 0) && (grid.columns % 32 == 0 || (whole_row && !grid.flat));
}

// The values in fp32 or bf16, with contiguous rows.
Tensor readable(const Tensor& values) {
  check(values.dim() == 2 && values.is_cpu(), "quantize: the values are ", values.sizes(), " on ",
        values.device().str());
  const Tensor plain = values.detach();
  return tensor::kernels_serve(plain) ? plain : plain.to(at::kFloat).contiguous();
}

Codes by_kernels(const Tensor& values, const kernels::QuantizedSpec& spec) {
  const Tensor read = readable(values);
  return std::make_shared<kernels::QuantizedWeight>(
      kernels::quantize(tensor::executor(), tensor::input_of(read), read.size(0), read.size(1), spec));
}

MadeCodes made_codes(const Tensor& values, const CodeRule& rule) {
  const Tensor wide = values.detach().to(at::kFloat).contiguous();
  return make_codes(tensor::executor(), rule, wide.const_data_ptr<float>(), wide.size(0), wide.size(1), mean_of);
}

// Four-bit codes of 16 numbers whose groups are parts of rows, packed for kernels.
bool fits_kernels(const CodeRule& rule, int64_t k) {
  const bool blocks = rule.method == "nf4" || rule.method == "fp4";
  return blocks && rule.group % 32 == 0 && k % std::max<int64_t>(rule.group, 1) == 0 && k <= 131072;
}

Codes in_blocks(const Tensor& values, const Format& format, const CodeRule& rule) {
  const MadeCodes made = made_codes(values, rule);
  return std::make_shared<kernels::QuantizedWeight>(kernels::pack_codes(
      tensor::executor(), made.codes.data(), made.scales.data(), nullptr, values.size(0), values.size(1), format.spec));
}

// Bytes whose activations stay plain.
std::shared_ptr<const kernels::CodePanels> plain_bytes(const kernels::QuantizedWeight& weight) {
  const int64_t n = weight.n(), k = weight.k(), groups = weight.groups();
  std::vector<uint8_t> codes(size_t(n * k));
  std::vector<float> scales(size_t(n * groups));
  kernels::unpack_codes(tensor::executor(), weight, codes.data(), scales.data());
  const kernels::PanelSource rows{
      .codes = [&](int64_t first, int64_t count,
                   uint8_t* to) { std::copy_n(codes.begin() + first * k, count * k, to); },
      .scale = [&](int64_t row, int64_t group) { return scales[size_t(row * groups + group)]; },
      .shift = {}};
  return std::make_shared<kernels::CodePanels>(tensor::executor(), rows, n, k,
                                               kernels::CodePanelsSpec{.group = weight.spec().group});
}

bool has_nan(const CodedWeight& weight, int64_t n, int64_t first, int64_t step) {
  std::vector<uint8_t> row(size_t(weight.k()));
  for (int64_t r = 0; r < n; ++r) {
    weight.bytes_of_rows(first + r * step, 1, 1, row.data());
    if (std::ranges::any_of(row, [](uint8_t code) { return (code & 0x7f) == 0x7f; })) return true;
  }
  return false;
}

kernels::ValueRounding rounding_of(weights::DType dtype) {
  return dtype == weights::DType::bf16  ? kernels::ValueRounding::bf16
         : dtype == weights::DType::f16 ? kernels::ValueRounding::f16
                                        : kernels::ValueRounding::none;
}

// The rows in panels that loops decode; null: their codes or groups do not fit.
std::shared_ptr<const kernels::CodePanels> panels_of(const CodedWeight& weight, int64_t n, int64_t first,
                                                     int64_t step) {
  const ScaleGrid& grid = weight.grid;
  const int64_t k = weight.k();
  if (!(weight.indices || weight.bytes_of_rows)) return nullptr;
  if (grid.flat && k % grid.columns != 0) return nullptr;
  const kernels::CodePanelsSpec spec{
      .codes = weight.indices ? kernels::PanelCodes::table4 : weight.byte_codes,
      .group = grid.columns < k ? grid.columns : 0,
      .group_of_k = grid.group_of_column,
      .table = weight.table,
      .shift = shift_of(weight),
      .rounding = rounding_of(weight.rounding),
      .factor = weight.factor,
  };
  const bool fp8 = spec.codes == kernels::PanelCodes::e4m3;
  if (!spec.fits_layout() || (fp8 && has_nan(weight, n, first, step))) return nullptr;
  const auto index = [&](int64_t row, int64_t group) { return grid.index(first + row * step, group, k); };
  const kernels::PanelSource rows{
      .codes =
          [&](int64_t row, int64_t count, uint8_t* to) {
            (weight.indices ? weight.indices : weight.bytes_of_rows)(first + row * step, step, count, to);
          },
      .scale = [&](int64_t row, int64_t group) { return weight.scale(index(row, group)); },
      .shift = [&](int64_t row,
                   int64_t group) { return (weight.zero ? weight.zero : weight.offset)(index(row, group)); }};
  return std::make_shared<kernels::CodePanels>(tensor::executor(), rows, n, k, spec);
}

}  // namespace

Codes quantize(const Tensor& values, const Format& format) {
  const CodeRule rule = rule_of(format);
  if (!is_made_here(rule)) return by_kernels(values, format.spec);
  check(fits_kernels(rule, values.size(1)), "quantize: kernels do not read ", format.name, " in rows of ",
        values.size(1));
  return in_blocks(values, format, rule);
}

ops::Matrix coded(const Tensor& values, const Format& format, at::ScalarType compute) {
  const CodeRule rule = rule_of(format);
  const int64_t n = values.size(0), k = values.size(1);
  if (format.name == "8bit") return encoded(plain_bytes(*by_kernels(values, format.spec)), n, 0, 1);
  if (!is_made_here(rule) || fits_kernels(rule, k)) return {{}, {}, nullptr, quantize(values, format)};
  return matrix_of(coded_weight(rule, made_codes(values, rule), n, k), n, 0, 1, compute);
}

int64_t bytes_of(const ops::Matrix& codes) {
  if (codes.quantized) return codes.quantized->bytes();
  if (const auto* const panels = kernels::panels_of(*codes.encoded)) return panels->bytes();
  return static_cast<const CodedWeight&>(*codes.encoded->rows).bytes();
}

WeightCodes codes_of(const ops::Matrix& matrix, const Format& format) {
  WeightCodes out;
  const auto make = [&](int64_t n, int64_t k, int64_t scales) {
    out = {.n = n, .k = k, .codes = std::vector<uint8_t>(size_t(n * k)), .scales = std::vector<float>(size_t(scales))};
  };
  if (const auto& packed = matrix.quantized) {
    make(packed->n(), packed->k(), packed->n() * packed->groups());
    kernels::unpack_codes(tensor::executor(), *packed, out.codes.data(), out.scales.data());
  } else if (const auto* const panels = kernels::panels_of(*matrix.encoded)) {
    const auto& layout = panels->layout();
    make(layout.n, layout.k, layout.n * layout.groups);
    kernels::unpack_panels(*panels, out.codes.data(), out.scales.data());
  } else {
    const auto& weight = static_cast<const CodedWeight&>(*matrix.encoded->rows);
    make(weight.rows(), weight.k(), weight.scales);
    (weight.indices ? weight.indices : weight.bytes_of_rows)(0, 1, out.n, out.codes.data());
    for (int64_t i = 0; i < weight.scales; ++i) out.scales[size_t(i)] = weight.scale(i);
  }
  // Indices of a table that are whole numbers in the files.
  const CodeRule rule = rule_of(format);
  if (rule.method == "ternary" || rule.method == "binary")
    for (uint8_t& code : out.codes) code = uint8_t(rule.method == "ternary" ? int(code) - 1 : 2 * int(code) - 1);
  return out;
}

Unpacked unpack(const kernels::QuantizedWeight& weight) {
  const bool bytes = kernels::meets_bytes(weight.spec().codes);
  const Tensor codes = at::empty({weight.n(), weight.k()}, at::TensorOptions().dtype(bytes ? at::kChar : at::kByte));
  const Tensor scales = at::empty({weight.n(), weight.groups()}, at::TensorOptions().dtype(at::kFloat));
  kernels::unpack_codes(tensor::executor(), weight, static_cast<uint8_t*>(codes.mutable_data_ptr()),
                        scales.mutable_data_ptr<float>());
  return {codes.to(at::kLong), scales};
}

ops::Matrix matrix_of(const std::shared_ptr<const CodedWeight>& weight, int64_t n, int64_t first, int64_t step,
                      at::ScalarType compute) {
  if (!kernels_know(*weight, compute)) {
    if (const auto panels = panels_of(*weight, n, first, step)) return encoded(panels, n, 0, 1);
    return encoded(weight, n, first, step);
  }
  const int64_t k = weight->k(), columns = std::min(weight->grid.columns, k), groups = (k + columns - 1) / columns;
  std::vector<uint8_t> codes(size_t(n * k));
  const kernels::QuantizedSpec spec{kernels::Codes::table4, columns < k ? columns : 0, weight->table,
                                    shift_of(*weight)};
  const NumberAt& shift = weight->zero ? weight->zero : weight->offset;
  std::vector<float> scales(size_t(n * groups)), shifts(shift ? scales.size() : 0);
  weight->indices(first, step, n, codes.data());
  for (int64_t r = 0; r < n; ++r)
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t index = weight->grid.index(first + r * step, g, k);
      scales[size_t(r * groups + g)] = weight->scale(index);
      if (shift) shifts[size_t(r * groups + g)] = shift(index);
    }
  return {{},
          {},
          nullptr,
          std::make_shared<kernels::QuantizedWeight>(
              kernels::pack_codes(tensor::executor(), codes.data(), scales.data(), shifts.data(), n, k, spec))};
}

Tensor values_of(const std::shared_ptr<const CodedWeight>& weight) {
  const at::ScalarType type = tensor::scalar_type(weight->rounding);
  return ops::decoded(encoded(weight, weight->rows(), 0, 1), type).view(weight->shape);
}

float mean_of(const std::vector<float>& numbers) {
  const c10::ParallelGuard one_thread(true);
  return at::from_blob(const_cast<float*>(numbers.data()), {int64_t(numbers.size())}, at::kFloat).mean().item<float>();
}

Tensor rounded(const Tensor& values, const Format& format) {
  return ops::decoded(coded(values, format, at::kFloat), at::kFloat).to(values.scalar_type());
}

}  // namespace easydel::quant
