// A weight as a checkpoint in codes holds it: the mapped tensors of its file, and how its values follow from them. A
// value is (code - zero) * scale + offset, where rows and columns share scales, zeros and offsets. It is rounded to the
// dtype in which the library that writes the format computes it, so that it has that library's bits.
//
// The files of formats (quant/<format>.cpp) compose one from the functions below. Nothing is copied but what has to be.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "easydel/kernels/code_panels.h"
#include "easydel/weights/tensor_view.h"

namespace easydel::quant {

// A number of a tensor, by its index.
using NumberAt = std::function<float(int64_t)>;
// Writes the codes of `count` rows from `first` on, `step` apart, as numbers: row-major [count, k].
using ReadCodes = std::function<void(int64_t first, int64_t step, int64_t count, float* to)>;

// The same as indices of a table of at most 16 values, or as the bytes that they are.
using ReadIndices = std::function<void(int64_t first, int64_t step, int64_t count, uint8_t* to)>;

// Which of the scales (and zeros, which have the same index) belongs to an element. Rows of a stack of matrices count
// on from matrix to matrix.
struct ScaleGrid {
  int64_t columns = 0;                         // neighbors in a row that share a scale
  int64_t rows = 1;                            // rows that share their scales
  int64_t row_stride = 0, column_stride = 1;   // of the indices
  int64_t matrix_rows = 0, matrix_stride = 0;  // of a stack; 0: one matrix
  std::vector<int32_t> group_of_column = {};   // act order: the group of each column; empty: column / columns
  // Groups are cut from the flat tensor instead, so that one may go on in the next row.
  bool flat = false;

  int64_t row_index(int64_t row) const;
  // Of a row of k elements in groups, unless order of columns or flat groups cross it.
  int64_t index(int64_t row, int64_t group, int64_t k) const;
};

struct CodedWeight final : kernels::EncodedRows {
  std::string format;                             // "gptq, 4 bits, groups of 128"
  std::vector<int64_t> shape;                     // [.., out, in] of the values
  weights::DType dtype = weights::DType::f32;     // of the values, as the model's other weights have it
  weights::DType rounding = weights::DType::f32;  // f32: a value is not rounded
  // One of them: numbers, indices of the table, or bytes that mean `byte_codes`.
  ReadCodes codes;
  ReadIndices indices = {}, bytes_of_rows = {};
  kernels::PanelCodes byte_codes = kernels::PanelCodes::i8;
  std::array<float, 16> table{};
  NumberAt scale, zero, offset;  // no zero or offset: all are 0; never both
  bool exact = false;            // value = code * scale needs no rounding in fp32 and in bf16
  float factor = 1;              // multiplies a value after its scale
  int64_t scales = 0;            // number of scales, which check_scales reads
  bool signed_scales = false;
  // Whether a model that is trained in full, quantized once more or saved reads its values instead; otherwise that is
  // refused, or keeps the codes.
  bool stands_for_values = false;
  ScaleGrid grid;
  std::vector<std::pair<std::string, weights::TensorView>> parts;  // the file's tensors, by their names
  std::string where;                                               // "file: name", for errors

  int64_t k() const override { return shape.back(); }
  int64_t rows() const;   // of all matrices
  int64_t bytes() const;  // of all parts
  void decode(int64_t first, int64_t step, int64_t count, float* to) const override;
  // UserError if a scale is not finite, or negative unless it may be.
  void check_scales() const;
};

// The numbers of a file's tensor, of any floating dtype; of U8, the power of two 2^(byte - 127). `view` outlives them.
NumberAt numbers_of(const weights::TensorView& view);
// Sets the codes of one byte each: I8, F8_E4M3 or F8_E5M2; and gives indices of e2m1_values, two in a byte, the lower
// half first. Their tensors' last dimension is that of the weight, and half of it. The views outlive them.
void set_byte_codes(CodedWeight& weight, const weights::TensorView& view);
ReadIndices e2m1_indices(const weights::TensorView& view);
// Bits [bit, bit + bits) of a little-endian array of words.
uint32_t bits_at(const std::byte* words, int64_t bit, int bits);
float e4m3_value(uint8_t code);
float e5m2_value(uint8_t code);
float e8m0_value(uint8_t code);
float half_value(uint16_t bits);
const std::array<float, 16>& e2m1_values();
float rounded_to(float value, weights::DType dtype);

}  // namespace easydel::quant
