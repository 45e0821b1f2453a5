// bitsandbytes' files. 4 bits: the weight's codes are one flat run of nibbles, the upper one first, whatever dtype they
// are stored in; absmax has a scale for each block of them; a JSON text in the tensor quant_state.bitsandbytes__nf4
// (fp4) says shape, block size and dtype. With double quantization absmax is bytes of a second table, with scales of
// their own and an offset. 8 bits: int8 rows with SCB. Source: bitsandbytes/functional.py (QuantState,
// int8_vectorwise_dequant).
#include <algorithm>
#include <cstring>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/text_table.h"
#include "easydel/quant/file_format.h"

namespace easydel::quant {
namespace {

using weights::DType;

std::vector<float> floats_of(const WeightTensors& tensors, std::string_view ending, const weights::TensorView& view,
                             int64_t count) {
  tensors.check_dtype(ending, view, DType::f32);
  tensors.check_shape(ending, view, {count});
  auto out = std::vector<float>(size_t(count));
  std::memcpy(out.data(), view.bytes.data(), view.bytes.size());
  return out;
}

struct State {
  std::string type;  // nf4, fp4
  int64_t block = 0, nested_block = 0;
  double nested_offset = 0;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
};

State read_state(WeightTensors& tensors) {
  for (const char* const type : {"nf4", "fp4"}) {
    const std::string ending = str(".weight.quant_state.bitsandbytes__", type);
    const auto found = tensors.find(ending);
    if (!found) continue;
    const std::string_view text(reinterpret_cast<const char*>(found->bytes.data()), found->bytes.size());
    const Value json = parse_json(text, tensors.where(ending));
    const auto bad = [&](const char* key) { tensors.refuse_tensor(ending, str("its ", key, " is missing or wrong")); };
    const auto integer = [&](const char* key) -> int64_t {
      const Value* const value = json.find(key);
      const auto number = value ? value->as_int() : std::nullopt;
      if (!number || *number <= 0) bad(key);
      return *number;
    };
    State out{.type = type, .block = integer("blocksize"), .shape = {}};
    if (json.find("nested_blocksize")) out.nested_block = integer("nested_blocksize");
    if (const Value* const offset = json.find("nested_offset")) out.nested_offset = offset->as_double().value_or(0);
    const Value* const dtype = json.find("dtype");
    const auto known = dtype ? weights::dtype_of_config(dtype->scalar) : std::nullopt;
    if (!known || !weights::is_floating(*known) || weights::size_of(*known) < 2) bad("dtype");
    out.dtype = *known;
    if (const Value* const shape = json.find("shape"); shape && shape->is_list())
      for (const Value& size : shape->items) out.shape.push_back(size.as_int().value_or(0));
    if (out.shape.size() < 2 || !weights::bytes_of_shape(out.shape, 1)) bad("shape");
    return out;
  }
  tensors.refuse_tensor(".weight.absmax", "belongs to codes, but there is no quant_state.bitsandbytes__nf4 or __fp4");
}

bool claims_4bit(const WeightTensors&) { return true; }

std::shared_ptr<CodedWeight> read_4bit(WeightTensors& tensors) {
  const auto codes = tensors.need(".weight"), absmax = tensors.need(".weight.absmax"),
             map = tensors.need(".weight.quant_map");
  const State state = read_state(tensors);
  int64_t count = 1;
  for (const int64_t size : state.shape) count *= size;
  const int64_t blocks = (count + state.block - 1) / state.block;
  if (int64_t(codes.bytes.size()) != (count + 1) / 2)
    tensors.refuse_tensor(".weight", str("has ", codes.bytes.size(), " bytes; a weight of ", shape_text(state.shape),
                                         " has ", (count + 1) / 2));
  const std::vector<float> table = floats_of(tensors, ".weight.quant_map", map, 16);
  NumberAt scale;
  if (absmax.dtype == DType::u8) {
    if (state.nested_block == 0)
      tensors.refuse_tensor(".weight.absmax", "is codes, but the quant_state has no nested_blocksize");
    const auto nested = tensors.need(".weight.nested_absmax"), nested_map = tensors.need(".weight.nested_quant_map");
    const auto scales =
        floats_of(tensors, ".weight.nested_absmax", nested, (blocks + state.nested_block - 1) / state.nested_block);
    const auto values = floats_of(tensors, ".weight.nested_quant_map", nested_map, 256);
    scale = [from = absmax.bytes.data(), scales, values, block = state.nested_block,
             offset = float(state.nested_offset)](int64_t i) {
      return values[size_t(from[i])] * scales[size_t(i / block)] + offset;
    };
  } else {
    tensors.check_dtype(".weight.absmax", absmax, DType::f32);
    scale = numbers_of(absmax);
  }
  tensors.check_shape(".weight.absmax", absmax, {blocks});
  const auto weight = tensors.weight(str("bitsandbytes, ", state.type, ", blocks of ", state.block,
                                         absmax.dtype == DType::u8 ? ", double quantization" : ""),
                                     state.shape);
  weight->dtype = weight->rounding = state.dtype;
  weight->scale = std::move(scale);
  weight->scales = blocks;
  weight->grid.columns = state.block;
  weight->grid.flat = true;
  std::copy(table.begin(), table.end(), weight->table.begin());
  weight->indices = [from = codes.bytes.data(), in = weight->k()](int64_t first, int64_t step, int64_t rows,
                                                                  uint8_t* to) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < in; ++i) {
        const int64_t at = (first + r * step) * in + i;
        to[r * in + i] = uint8_t(from[at / 2] >> (at % 2 == 0 ? 4 : 0) & std::byte(15));
      }
  };
  return weight;
}

bool claims_8bit(const WeightTensors& tensors) { return tensors.has(".weight"); }

std::shared_ptr<CodedWeight> read_8bit(WeightTensors& tensors) {
  const auto codes = tensors.need(".weight"), scales = tensors.need(".SCB");
  const auto layout = tensors.find(".weight_format");
  tensors.check_dtype(".weight", codes, DType::i8);
  if (codes.shape.size() != 2) tensors.refuse_tensor(".weight", str("is ", shape_text(codes.shape), ", not a matrix"));
  tensors.check_dtype(".SCB", scales, DType::f32);
  tensors.check_shape(".SCB", scales, {codes.shape[0]});
  if (layout && !layout->bytes.empty() && layout->bytes[0] != std::byte(0))
    tensors.refuse_tensor(".weight_format", "is not the layout of rows, the one that is read");
  const auto weight = tensors.weight("bitsandbytes, int8", codes.shape);
  set_scales(*weight, tensors, ".SCB", scales, {});
  weight->factor = 7.874015718698502e-3f;  // 1 / 127, as there
  set_byte_codes(*weight, codes);
  return weight;
}

}  // namespace

FileFormat bitsandbytes_4bit_format() { return {"bitsandbytes", ".weight.absmax", ".weight", claims_4bit, read_4bit}; }
FileFormat bitsandbytes_8bit_format() { return {"bitsandbytes", ".SCB", ".weight", claims_8bit, read_8bit}; }

}  // namespace easydel::quant
