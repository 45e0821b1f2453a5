// Blocks of ggml that are codes with scales: Q8_0, Q4_0, Q4_1 and the K-quants of GGUF files. Q4_0's scales may be
// negative; Q4_1, Q2_K, Q4_K and Q5_K have offsets. A block of a K-quant is 256 values in groups of 16 or 32, whose
// scales and offsets are small whole numbers times those of the block. Source: ggml-org/ggml src/ggml-quants.c,
// dequantize_row_*. Other types of blocks become values.
#include <cstring>

#include "easydel/quant/file_format.h"

namespace easydel::quant {
namespace {

using weights::GgmlType;

float half_at(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return half_value(bits);
}

// How a type's blocks are read. A value is code x scale + offset; a code is a byte, or an index of a table that counts
// from `least` on.
struct BlockReader {
  GgmlType type;
  int64_t group;  // values that share a scale
  kernels::PanelCodes codes;
  float least;
  void (*read_codes)(const uint8_t* block, uint8_t* to);
  float (*scale)(const uint8_t* block, int64_t group);
  float (*offset)(const uint8_t* block, int64_t group);  // null: none
};

float first_half(const uint8_t* block, int64_t) { return half_at(block); }
float second_half(const uint8_t* block, int64_t) { return half_at(block + 2); }

void q8_codes(const uint8_t* block, uint8_t* to) { std::memcpy(to, block + 2, 32); }

void halves_of(const uint8_t* from, uint8_t* to) {
  for (int64_t i = 0; i < 16; ++i) to[i] = from[i] & 15, to[i + 16] = from[i] >> 4;
}
void q4_0_codes(const uint8_t* block, uint8_t* to) { halves_of(block + 2, to); }
void q4_1_codes(const uint8_t* block, uint8_t* to) { halves_of(block + 4, to); }

// Two bits of a byte for each value: of 128 values, those of 16 bytes are groups g, g + 2, g + 4 and g + 6.
uint8_t two_bits(const uint8_t* codes, int64_t group, int64_t i) {
  return codes[group / 8 * 32 + group % 2 * 16 + i] >> group % 8 / 2 * 2 & 3;
}

void q2_codes(const uint8_t* block, uint8_t* to) {
  for (int64_t group = 0; group < 16; ++group)
    for (int64_t i = 0; i < 16; ++i) *to++ = two_bits(block + 16, group, i);
}
float q2_scale(const uint8_t* block, int64_t group) { return half_at(block + 80) * float(block[group] & 15); }
float q2_offset(const uint8_t* block, int64_t group) { return -(half_at(block + 82) * float(block[group] >> 4)); }

void q3_codes(const uint8_t* block, uint8_t* to) {
  for (int64_t group = 0; group < 16; ++group)
    for (int64_t i = 0; i < 16; ++i)
      *to++ = uint8_t(two_bits(block + 32, group, i) | (block[group % 2 * 16 + i] >> group / 2 & 1) << 2);
}
// Six bits: the low four in 8 bytes (low halves, then high halves), the upper two in the 4 bytes after them.
float q3_scale(const uint8_t* block, int64_t group) {
  const uint8_t* const packed = block + 96;
  const int low = group < 8 ? packed[group] & 15 : packed[group - 8] >> 4;
  return half_at(block + 108) * float((low | (packed[8 + group % 4] >> group / 4 * 2 & 3) << 4) - 32);
}

// Of Q4_K and Q5_K: scales and offsets of six bits each, of 8 groups, in 12 bytes.
float k_scale(const uint8_t* block, int64_t group) {
  const uint8_t* const packed = block + 4;
  return half_at(block) *
         float(group < 4 ? packed[group] & 63 : (packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4);
}
float k_offset(const uint8_t* block, int64_t group) {
  const uint8_t* const packed = block + 4;
  return -(half_at(block + 2) *
           float(group < 4 ? packed[group + 4] & 63 : (packed[group + 4] >> 4) | (packed[group] >> 6) << 4));
}
uint8_t nibble_at(const uint8_t* codes, int64_t group, int64_t i) {
  return codes[group / 2 * 32 + i] >> group % 2 * 4 & 15;
}
void q4_k_codes(const uint8_t* block, uint8_t* to) {
  for (int64_t group = 0; group < 8; ++group)
    for (int64_t i = 0; i < 32; ++i) *to++ = nibble_at(block + 16, group, i);
}
void q5_k_codes(const uint8_t* block, uint8_t* to) {
  for (int64_t group = 0; group < 8; ++group)
    for (int64_t i = 0; i < 32; ++i)
      *to++ = uint8_t(nibble_at(block + 48, group, i) | (block[16 + i] >> group & 1) << 4);
}

void q6_codes(const uint8_t* block, uint8_t* to) {
  for (int64_t group = 0; group < 16; ++group) {
    const int64_t half = group / 8, part = group % 8 / 2, lane = group % 2 * 16;
    const uint8_t* const low = block + half * 64 + part % 2 * 32 + lane;
    const uint8_t* const high = block + 128 + half * 32 + lane;
    for (int64_t i = 0; i < 16; ++i)
      *to++ = uint8_t(((low[i] >> part / 2 * 4 & 15) | (high[i] >> part * 2 & 3) << 4) - 32);
  }
}
float q6_scale(const uint8_t* block, int64_t group) { return half_at(block + 208) * float(int8_t(block[192 + group])); }

constexpr auto i8 = kernels::PanelCodes::i8, u8 = kernels::PanelCodes::u8, table4 = kernels::PanelCodes::table4;
constexpr BlockReader readers[] = {
    {GgmlType::q8_0, 32, i8, 0, q8_codes, first_half, nullptr},
    {GgmlType::q4_0, 32, table4, -8, q4_0_codes, first_half, nullptr},
    {GgmlType::q4_1, 32, table4, 0, q4_1_codes, first_half, second_half},
    {GgmlType::q2_k, 16, table4, 0, q2_codes, q2_scale, q2_offset},
    {GgmlType::q3_k, 16, table4, -4, q3_codes, q3_scale, nullptr},
    {GgmlType::q4_k, 32, table4, 0, q4_k_codes, k_scale, k_offset},
    {GgmlType::q5_k, 32, u8, 0, q5_k_codes, k_scale, k_offset},
    {GgmlType::q6_k, 16, i8, 0, q6_codes, q6_scale, nullptr},
};

const BlockReader* reader_of(const weights::TensorView& view) {
  for (const BlockReader& reader : readers)
    if (view.blocks == reader.type) return &reader;
  return nullptr;
}

// Rows of blocks.
struct Blocks {
  weights::StoredRows rows;
  const BlockReader* reader;
  int64_t bytes, values, in_row;  // of a block; blocks in a row

  explicit Blocks(const weights::StoredRows& stored)
      : rows(stored),
        reader(reader_of(stored.view)),
        bytes(int64_t(weights::form_of(*stored.view.blocks).bytes)),
        values(weights::form_of(*stored.view.blocks).elements),
        in_row(stored.view.shape.back() / values) {}

  const uint8_t* block(int64_t row, int64_t index) const {
    return reinterpret_cast<const uint8_t*>(rows.view.bytes.data()) + (rows.row_of(row) * in_row + index) * bytes;
  }
  NumberAt number(float (*of)(const uint8_t* block, int64_t group)) const {
    return [own = *this, of, groups = values / reader->group](int64_t index) {
      const int64_t at = index / groups;
      return of(own.block(at / own.in_row, at % own.in_row), index % groups);
    };
  }
  void read_codes(int64_t first, int64_t step, int64_t count, uint8_t* to) const {
    for (int64_t r = 0; r < count; ++r)
      for (int64_t b = 0; b < in_row; ++b, to += values) reader->read_codes(block(first + r * step, b), to);
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
  return reader_of(view) && view.shape.size() == 2 && view.elements() > 0 &&
         view.shape.back() % weights::form_of(*view.blocks).elements == 0;
}

void set_blocks(CodedWeight& weight, const weights::StoredRows& rows) {
  const Blocks blocks(rows);
  const BlockReader& reader = *blocks.reader;
  weight.grid = {.columns = reader.group, .row_stride = rows.view.shape.back() / reader.group};
  weight.scales = rows.view.elements() / reader.group;
  weight.scale = blocks.number(reader.scale);
  if (reader.offset) weight.offset = blocks.number(reader.offset);
  weight.signed_scales = true;
  weight.stands_for_values = true;
  const auto codes = [blocks](int64_t first, int64_t step, int64_t count, uint8_t* to) {
    blocks.read_codes(first, step, count, to);
  };
  if (reader.codes != table4) {
    weight.byte_codes = reader.codes;
    weight.bytes_of_rows = codes;
    return;
  }
  for (int code = 0; code < 16; ++code) weight.table[size_t(code)] = float(code) + reader.least;
  weight.indices = codes;
}

FileFormat ggml_format() { return {"ggml", ".weight", ".weight", claims_ggml, read_ggml}; }

}  // namespace easydel::quant
