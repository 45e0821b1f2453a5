// AWQ's files of the version gemm. Words of eight 4-bit codes run along the outputs, in the order 0 2 4 6 1 3 5 7:
// qweight [in, out / 8], qzeros [groups, out / 8], scales [groups, out]. Source: AutoAWQ awq/modules/linear/gemm.py.
#include <array>
#include <cstring>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/quant/file_format.h"

namespace easydel::quant {
namespace {

using weights::DType;

constexpr std::array<int, 8> nibble_of_row = {0, 4, 1, 5, 2, 6, 3, 7};

uint8_t code_at(const std::byte* words, int64_t words_per_row, int64_t row, int64_t column) {
  uint32_t word;
  std::memcpy(&word, words + (row * words_per_row + column / 8) * 4, 4);
  return uint8_t(word >> (4 * nibble_of_row[size_t(column % 8)]) & 15u);
}

bool claims_awq(const WeightTensors& tensors) { return tensors.has(".scales"); }

std::shared_ptr<CodedWeight> read_awq(WeightTensors& tensors) {
  const auto words = tensors.need(".qweight"), scales = tensors.need(".scales");
  const auto zeros = tensors.find(".qzeros");
  tensors.check_dtype(".qweight", words, DType::i32);
  if (words.shape.size() != 2 || scales.shape.size() != 2 || !weights::is_floating(scales.dtype))
    tensors.refuse_tensor(".qweight", "qweight and scales are matrices");
  const int64_t in = words.shape[0], out = scales.shape[1], groups = scales.shape[0];
  tensors.check_shape(".qweight", words, {in, out / 8});
  if (out % 8 != 0) tensors.refuse_tensor(".scales", str("has ", out, " outputs, which are no whole words"));
  if (!zeros && tensors.config().boolean("zero_point").value_or(false))
    tensors.refuse_tensor(".qweight", "has no qzeros, and quantization_config.zero_point is true");
  if (zeros) {
    tensors.check_dtype(".qzeros", *zeros, DType::i32);
    tensors.check_shape(".qzeros", *zeros, {groups, out / 8});
  }
  tensors.check_stated("bits", 4);
  const int64_t columns = columns_of_group(tensors, in, groups);
  const auto weight = tensors.weight(str("awq, 4 bits, groups of ", columns), {out, in});
  weight->grid.columns = columns;
  weight->grid.row_stride = 1;
  weight->grid.column_stride = out;
  weight->scale = numbers_of(scales);
  weight->scales = groups * out;
  weight->rounding = scales.dtype;
  if (zeros)
    weight->zero = [from = zeros->bytes.data(), out](int64_t index) {
      return float(code_at(from, out / 8, index / out, index % out));
    };
  else
    weight->zero = [](int64_t) { return 8.0f; };
  std::iota(weight->table.begin(), weight->table.end(), 0.0f);
  weight->indices = [from = words.bytes.data(), out, in](int64_t first, int64_t step, int64_t count, uint8_t* to) {
    for (int64_t i = 0; i < in; ++i)
      for (int64_t r = 0; r < count; ++r) to[r * in + i] = code_at(from, out / 8, i, first + r * step);
  };
  return weight;
}

}  // namespace

FileFormat awq_format() { return {"awq", ".qweight", ".weight", claims_awq, read_awq}; }

}  // namespace easydel::quant
