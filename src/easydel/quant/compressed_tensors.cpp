// compressed-tensors' packed files. pack-quantized: weight_packed I32, each row a run of codes + 2^(bits - 1) from the
// lowest bit on; weight_scale; weight_zero_point packed along the outputs; weight_shape; weight_g_idx. nvfp4 and mxfp4:
// weight_packed U8, two e2m1 codes in a byte; weight_scale F8_E4M3 that weight_global_scale divides, or U8 powers of
// two. Formats whose codes are bytes are in scaled.cpp. Source: compressed_tensors/compressors.
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/base/regular_expression.h"
#include "easydel/quant/file_format.h"

namespace easydel::quant {
namespace {

using weights::DType;

bool claims_packed(const WeightTensors&) { return true; }

bool matches_start(const std::string& pattern, const std::string& layer, const Where& where) {
  try {
    return RegularExpression("(?:" + pattern + ")[\\s\\S]*").matches(layer);
  } catch (const InvalidRegularExpression&) {
    refuse(where.below("config_groups"), "the target 're:" + pattern + "' is not a regular expression");
  }
}

bool targets(const Value& group, const std::string& layer, const Where& where) {
  const Value* const list = group.find("targets");
  if (!list || !list->is_list()) return false;
  for (const Value& target : list->items) {
    const std::string word = target.as_string().value_or("");
    if (word == "Linear" || word == layer) return true;
    if (word.starts_with("re:") && matches_start(word.substr(3), layer, where)) return true;
  }
  return false;
}

// What the group of the configuration that names the layer says of its weights; null: no group does.
const Value* scheme_of(const WeightTensors& tensors) {
  const Value* const groups = tensors.config().values.find("config_groups");
  if (!groups || !groups->is_map()) return nullptr;
  const Value* found = nullptr;
  for (const auto& [name, group] : groups->entries)
    if (targets(group, tensors.stem(), tensors.config().where)) {
      const Value* const targets_of = group.find("targets");
      const bool by_class = targets_of->items.size() == 1 && targets_of->items[0].scalar == "Linear";
      if (!found || !by_class) found = group.find("weights");
    }
  return found && found->is_map() ? found : nullptr;
}

// The bits of codes of which `in` fill so many words. The configuration decides where several fit.
int64_t bits_of(const WeightTensors& tensors, int64_t in, int64_t words) {
  const auto fits = [&](int64_t bits) { return (in * bits + 31) / 32 == words; };
  const Value* const scheme = scheme_of(tensors);
  const Value* const stated = scheme ? scheme->find("num_bits") : nullptr;
  if (const auto bits = stated ? stated->as_int() : std::nullopt) {
    if (!fits(*bits))
      refuse(tensors.config().where.below("config_groups"),
             str("num_bits is ", *bits, ", but ", tensors.stem(), " has ", words, " words for ", in, " values"),
             "correct it, or load the unquantized model");
    return *bits;
  }
  for (const int64_t bits : {4, 8, 2})
    if (fits(bits)) return bits;
  return 0;
}

std::shared_ptr<CodedWeight> read_words(WeightTensors& tensors, const weights::TensorView& words) {
  const auto scales = tensors.need(".weight_scale"), size = tensors.need(".weight_shape");
  const auto zeros = tensors.find(".weight_zero_point"), order = tensors.find(".weight_g_idx");
  tensors.check_dtype(".weight_packed", words, DType::i32);
  if ((size.dtype != DType::i64 && size.dtype != DType::i32) || size.shape != std::vector<int64_t>{2})
    tensors.refuse_tensor(".weight_shape", "is not two integers");
  std::vector<int64_t> shape(2);
  for (size_t d = 0; d < 2; ++d) {
    int32_t narrow = 0;
    if (size.dtype == DType::i64)
      std::memcpy(&shape[d], size.bytes.data() + d * 8, 8);
    else
      std::memcpy(&narrow, size.bytes.data() + d * 4, 4), shape[d] = narrow;
  }
  const int64_t out = shape[0], in = shape[1];
  if (words.shape.size() != 2 || out <= 0 || in <= 0 || in > (int64_t(1) << 40))
    tensors.refuse_tensor(".weight_packed", "does not fit weight_shape");
  const int64_t bits = bits_of(tensors, in, words.shape[1]);
  if (bits != 2 && bits != 4 && bits != 8)
    tensors.refuse_tensor(".weight_packed", str("has codes of ", bits, " bits; 2, 4 and 8 are read"));
  tensors.check_shape(".weight_packed", words, {out, (in * bits + 31) / 32});
  const auto weight = tensors.weight(str("compressed-tensors, ", bits, " bits"), shape);
  const Value* const scheme = scheme_of(tensors);
  const Value* const group = scheme ? scheme->find("group_size") : nullptr;
  const int64_t stated = group ? group->as_int().value_or(0) : 0;
  set_scales(*weight, tensors, ".weight_scale", scales, {1, stated});
  if (weight->grid.columns < in) weight->format += str(", groups of ", weight->grid.columns);
  weight->rounding = scales.dtype;
  if (order) {
    int32_t first = -1;
    if (order->bytes.size() >= 4) std::memcpy(&first, order->bytes.data(), 4);
    if (first != -1)  // else it was never set
      weight->grid.group_of_column =
          groups_of_columns(tensors, ".weight_g_idx", *order, in, scales.shape.back(), weight->grid.columns);
  }
  const float middle = float(1 << (bits - 1));
  if (zeros) {
    // Packed along the outputs: words [out * bits / 32, groups].
    tensors.check_dtype(".weight_zero_point", *zeros, DType::i32);
    const int64_t groups = scales.elements() / out;
    if (scales.elements() != groups * out || groups == 0)
      tensors.refuse_tensor(".weight_zero_point", "belongs to scales of rows or groups");
    tensors.check_shape(".weight_zero_point", *zeros, {(out * bits + 31) / 32, groups});
    weight->zero = [from = zeros->bytes.data(), groups, bits, middle](int64_t index) {
      const int64_t bit = index / groups * bits, column = index % groups;
      uint32_t word;
      std::memcpy(&word, from + (bit / 32 * groups + column) * 4, 4);
      return float(word >> (bit % 32) & ((1u << bits) - 1)) - middle;
    };
  }
  const std::byte* const from = words.bytes.data();
  const int64_t row_bytes = words.shape[1] * 4;
  if (bits == 8) {
    weight->byte_codes = kernels::PanelCodes::i8;
    weight->bytes_of_rows = [from, row_bytes, in](int64_t first, int64_t step, int64_t count, uint8_t* to) {
      for (int64_t r = 0; r < count; ++r)
        for (int64_t i = 0; i < in; ++i) to[r * in + i] = uint8_t(int(from[(first + r * step) * row_bytes + i]) - 128);
    };
    return weight;
  }
  for (size_t i = 0; i < 16; ++i) weight->table[i] = float(i) - middle;
  weight->indices = [from, row_bytes, in, bits](int64_t first, int64_t step, int64_t count, uint8_t* to) {
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < in; ++i)
        to[r * in + i] = uint8_t(bits_at(from + (first + r * step) * row_bytes, i * bits, int(bits)));
  };
  return weight;
}

std::shared_ptr<CodedWeight> read_fp4(WeightTensors& tensors, const weights::TensorView& codes) {
  const auto scales = tensors.need(".weight_scale");
  const auto global = tensors.find(".weight_global_scale");
  if (codes.shape.size() < 2) tensors.refuse_tensor(".weight_packed", "is not a matrix");
  std::vector<int64_t> shape = codes.shape;
  shape.back() *= 2;
  const auto weight = tensors.weight(global ? "compressed-tensors, nvfp4" : "compressed-tensors, mxfp4", shape);
  set_scales(*weight, tensors, ".weight_scale", scales, {1, global ? 16 : 32});
  if (global) {
    tensors.check_dtype(".weight_global_scale", *global, DType::f32);
    if (global->elements() != 1) tensors.refuse_tensor(".weight_global_scale", "is not one number");
    weight->scale = [scale = weight->scale, divisor = numbers_of(*global)(0)](int64_t i) { return scale(i) / divisor; };
  }
  weight->indices = e2m1_indices(codes);
  weight->table = e2m1_values();
  weight->rounding = DType::bf16;  // whatever the model's dtype
  weight->exact = !global;         // powers of two
  return weight;
}

std::shared_ptr<CodedWeight> read_packed(WeightTensors& tensors) {
  const auto codes = tensors.need(".weight_packed");
  return codes.dtype == DType::u8 ? read_fp4(tensors, codes) : read_words(tensors, codes);
}

}  // namespace

FileFormat packed_format() { return {"compressed-tensors", ".weight_packed", ".weight", claims_packed, read_packed}; }

}  // namespace easydel::quant
