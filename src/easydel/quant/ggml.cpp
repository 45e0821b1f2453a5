// Blocks of ggml that are codes with a scale for 32 values: Q8_0, Q4_0 and Q4_1 of GGUF files. Q4_0's scales may be
// negative, and Q4_1 has offsets. Source: ggml-org/ggml src/ggml-quants.c, dequantize_row_*. Other types of blocks
// become values.
#include <cstring>

#include "easydel/quant/file_format.h"

namespace easydel::quant {
namespace {

using weights::GgmlType;

constexpr int64_t block_values = 32;

int64_t bytes_of_head(GgmlType type) { return type == GgmlType::q4_1 ? 4 : 2; }

// Rows of blocks, and numbers of their heads.
struct Blocks {
  weights::StoredRows rows;
  int64_t bytes, head, in_row;  // of a block; blocks in a row

  explicit Blocks(const weights::StoredRows& stored)
      : rows(stored),
        bytes(int64_t(weights::form_of(*stored.view.blocks).bytes)),
        head(bytes_of_head(*stored.view.blocks)),
        in_row(stored.view.shape.back() / block_values) {}

  const std::byte* row(int64_t index) const { return rows.view.bytes.data() + rows.row_of(index) * in_row * bytes; }
  NumberAt number(int64_t place) const {
    return [own = *this, place](int64_t index) {
      uint16_t bits;
      std::memcpy(&bits, own.row(index / own.in_row) + index % own.in_row * own.bytes + place * 2, sizeof bits);
      return half_value(bits);
    };
  }
  // Calls `take` with the codes of each block and where they are wanted.
  template <class Take>
  void each(int64_t first, int64_t step, int64_t count, uint8_t* to, const Take& take) const {
    for (int64_t r = 0; r < count; ++r) {
      const std::byte* const from = row(first + r * step) + head;
      for (int64_t b = 0; b < in_row; ++b) take(from + b * bytes, to + (r * in_row + b) * block_values);
    }
  }
};

bool claims_ggml(const WeightTensors& tensors) { return is_blocks_of_codes(tensors.info(".weight")); }

std::shared_ptr<CodedWeight> read_ggml(WeightTensors& tensors) {
  const weights::StoredRows rows = tensors.need_stored(".weight");
  const auto weight = tensors.weight(std::string(rows.view.type_name()), rows.view.shape);
  weight->dtype = rows.view.dtype;
  set_blocks(*weight, rows);
  return weight;
}

}  // namespace

bool is_blocks_of_codes(const weights::TensorView& view) {
  const bool codes = view.blocks == GgmlType::q8_0 || view.blocks == GgmlType::q4_0 || view.blocks == GgmlType::q4_1;
  return codes && view.shape.size() == 2 && view.elements() > 0 && view.shape.back() % block_values == 0;
}

void set_blocks(CodedWeight& weight, const weights::StoredRows& rows) {
  const Blocks blocks(rows);
  const int64_t in = rows.view.shape.back();
  weight.grid = {.columns = block_values, .row_stride = in / block_values};
  weight.scales = rows.view.elements() / block_values;
  weight.scale = blocks.number(0);
  weight.signed_scales = true;
  weight.stands_for_values = true;
  if (rows.view.blocks == GgmlType::q8_0) {
    weight.bytes_of_rows = [blocks](int64_t first, int64_t step, int64_t count, uint8_t* to) {
      blocks.each(first, step, count, to,
                  [](const std::byte* from, uint8_t* codes) { std::memcpy(codes, from, size_t(block_values)); });
    };
    return;
  }
  const bool shifted = rows.view.blocks == GgmlType::q4_1;
  if (shifted) weight.offset = blocks.number(1);
  for (int code = 0; code < 16; ++code) weight.table[size_t(code)] = float(shifted ? code : code - 8);
  weight.indices = [blocks](int64_t first, int64_t step, int64_t count, uint8_t* to) {
    blocks.each(first, step, count, to, [](const std::byte* from, uint8_t* codes) {
      for (int64_t i = 0; i < block_values / 2; ++i) {
        codes[i] = uint8_t(from[i]) & 15;
        codes[i + block_values / 2] = uint8_t(from[i]) >> 4;
      }
    });
  };
}

FileFormat ggml_format() { return {"ggml", ".weight", ".weight", claims_ggml, read_ggml}; }

}  // namespace easydel::quant
