// GPTQ's files, also as auto-round writes them. Words of 32 bits run along the inputs: qweight [in * bits / 32, out],
// qzeros [groups, out * bits / 32] with the zero minus 1 (checkpoint_format gptq_v2: the zero), scales [groups, out],
// g_idx [in]. Source: AutoGPTQ auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py.
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/quant/file_format.h"

namespace easydel::quant {
namespace {

using weights::DType;

bool claims_gptq(const WeightTensors& tensors) {
  if (!tensors.has(".scales")) return true;
  const auto words = tensors.view(".qweight"), scales = tensors.view(".scales");
  return words.shape.size() != 2 || scales.shape.size() != 2 || words.shape[1] == scales.shape[1];
}

std::shared_ptr<CodedWeight> read_gptq(WeightTensors& tensors) {
  const auto words = tensors.need(".qweight"), scales = tensors.need(".scales"), zeros = tensors.need(".qzeros");
  tensors.check_dtype(".qweight", words, DType::i32);
  tensors.check_dtype(".qzeros", zeros, DType::i32);
  if (words.shape.size() != 2 || scales.shape.size() != 2 || zeros.shape.size() != 2 ||
      !weights::is_floating(scales.dtype))
    tensors.refuse_tensor(".qweight", "qweight, qzeros and scales are matrices");
  const int64_t out = scales.shape[1], groups = scales.shape[0];
  const int64_t bits = out > 0 ? zeros.shape[1] * 32 / out : 0;
  if (bits != 2 && bits != 4 && bits != 8)
    tensors.refuse_tensor(".qzeros", str("has codes of ", bits, " bits; 2, 4 and 8 are read"));
  tensors.check_shape(".qzeros", zeros, {groups, out * bits / 32});
  tensors.check_shape(".qweight", words, {words.shape[0], out});
  tensors.check_stated("bits", bits);
  const int64_t in = words.shape[0] * 32 / bits, columns = columns_of_group(tensors, in, groups);
  const auto order = tensors.find(".g_idx");
  const auto weight = tensors.weight(str("gptq, ", bits, " bits, groups of ", columns), {out, in});
  if (order) weight->grid.group_of_column = groups_of_columns(tensors, ".g_idx", *order, in, groups, columns);
  weight->grid.columns = columns;
  weight->grid.row_stride = 1;
  weight->grid.column_stride = out;
  weight->scale = numbers_of(scales);
  weight->scales = groups * out;
  weight->rounding = scales.dtype;
  const uint32_t mask = (1u << bits) - 1, offset = tensors.config().word("checkpoint_format") == "gptq_v2" ? 0 : 1;
  weight->zero = [from = zeros.bytes.data(), bits, out, mask, offset](int64_t index) {
    const int64_t group = index / out, row = index % out;
    return float((bits_at(from + group * (out * bits / 8), row * bits, int(bits)) + offset) & mask);
  };
  const auto words_of = [from = words.bytes.data(), bits, out, in, mask](int64_t first, int64_t step, int64_t count,
                                                                         uint8_t* to) {
    const int64_t per_word = 32 / bits;
    for (int64_t word = 0; word * per_word < in; ++word)
      for (int64_t r = 0; r < count; ++r) {
        uint32_t value;
        std::memcpy(&value, from + (word * out + first + r * step) * 4, 4);
        uint8_t* const codes = to + r * in + word * per_word;
        for (int64_t i = 0; i < per_word; ++i, value >>= bits) codes[i] = uint8_t(value & mask);
      }
  };
  if (bits == 8) {
    weight->bytes_of_rows = words_of;
    weight->byte_codes = kernels::PanelCodes::u8;
    return weight;
  }
  weight->indices = words_of;
  // Symmetric codes have one zero, which the table can hold.
  const float zero = weight->zero(0);
  bool one_zero = true;
  for (int64_t i = 0; one_zero && i < weight->scales; ++i) one_zero = weight->zero(i) == zero;
  for (size_t i = 0; i < 16; ++i) weight->table[i] = float(i) - (one_zero ? zero : 0);
  if (one_zero) weight->zero = {};
  return weight;
}

}  // namespace

FileFormat gptq_format() { return {"gptq", ".qweight", ".weight", claims_gptq, read_gptq}; }

}  // namespace easydel::quant
