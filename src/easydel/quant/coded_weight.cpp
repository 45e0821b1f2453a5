#include "easydel/quant/coded_weight.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/half.h"
#include "easydel/kernels/memory.h"

namespace easydel::quant {
namespace {

using weights::DType;

template <class T>
T read_at(const std::byte* from, int64_t index) {
  T value;
  std::memcpy(&value, from + index * int64_t(sizeof(T)), sizeof(T));
  return value;
}

std::array<float, 256> values_of_bytes(kernels::PanelCodes codes) {
  std::array<float, 256> out;
  for (int code = 0; code < 256; ++code)
    out[size_t(code)] = codes == kernels::PanelCodes::i8   ? float(int8_t(code))
                        : codes == kernels::PanelCodes::u8 ? float(code)
                                                           : e4m3_value(uint8_t(code));
  return out;
}

void round_row(float* values, int64_t count, DType dtype) {
  if (dtype == DType::bf16)
    for (int64_t i = 0; i < count; ++i) values[i] = kernels::widen(kernels::narrow(values[i]));
  else if (dtype == DType::f16)
    for (int64_t i = 0; i < count; ++i) values[i] = kernels::rounded_to_half(values[i]);
}

}  // namespace

float half_value(uint16_t bits) { return kernels::half_value(bits); }

float e4m3_value(uint8_t code) { return (code & 0x7f) == 0x7f ? NAN : kernels::widen(kernels::e4m3{code}); }

float e5m2_value(uint8_t code) { return half_value(uint16_t(code << 8)); }

float e8m0_value(uint8_t code) { return code == 255 ? NAN : std::ldexp(1.0f, int(code) - 127); }

const std::array<float, 16>& e2m1_values() {
  static constexpr std::array<float, 16> values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                                   -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
  return values;
}

float rounded_to(float value, DType dtype) {
  round_row(&value, 1, dtype);
  return value;
}

uint32_t bits_at(const std::byte* words, int64_t bit, int bits) {
  uint32_t value = uint32_t(words[bit / 8]) >> (bit % 8);
  if (bit % 8 + bits > 8) value |= uint32_t(words[bit / 8 + 1]) << (8 - bit % 8);
  return value & ((1u << bits) - 1);
}

NumberAt numbers_of(const weights::TensorView& view) {
  const std::byte* const from = view.bytes.data();
  switch (view.dtype) {
    case DType::f32:
      return [from](int64_t i) { return read_at<float>(from, i); };
    case DType::f64:
      return [from](int64_t i) { return float(read_at<double>(from, i)); };
    case DType::f16:
      return [from](int64_t i) { return half_value(read_at<uint16_t>(from, i)); };
    case DType::bf16:
      return [from](int64_t i) { return kernels::widen(kernels::bf16{read_at<uint16_t>(from, i)}); };
    case DType::f8_e4m3:
      return [from](int64_t i) { return e4m3_value(read_at<uint8_t>(from, i)); };
    case DType::f8_e5m2:
      return [from](int64_t i) { return e5m2_value(read_at<uint8_t>(from, i)); };
    case DType::u8:
    case DType::f8_e8m0:
      return [from](int64_t i) { return e8m0_value(read_at<uint8_t>(from, i)); };
    case DType::i8:
      return [from](int64_t i) { return float(read_at<int8_t>(from, i)); };
    default:
      throw Bug(str("numbers of a tensor of ", weights::name_of(view.dtype)));
  }
}

void set_byte_codes(CodedWeight& weight, const weights::TensorView& view) {
  const std::byte* const from = view.bytes.data();
  const int64_t in = view.shape.back();
  if (view.dtype == DType::f8_e5m2) {
    weight.codes = [from, in](int64_t first, int64_t step, int64_t count, float* to) {
      for (int64_t r = 0; r < count; ++r)
        for (int64_t i = 0; i < in; ++i) to[r * in + i] = e5m2_value(uint8_t(from[(first + r * step) * in + i]));
    };
    return;
  }
  weight.byte_codes = view.dtype == DType::i8 ? kernels::PanelCodes::i8 : kernels::PanelCodes::e4m3;
  weight.bytes_of_rows = [from, in](int64_t first, int64_t step, int64_t count, uint8_t* to) {
    for (int64_t r = 0; r < count; ++r) std::memcpy(to + r * in, from + (first + r * step) * in, size_t(in));
  };
}

ReadIndices e2m1_indices(const weights::TensorView& view) {
  return
      [from = view.bytes.data(), bytes = view.shape.back()](int64_t first, int64_t step, int64_t count, uint8_t* to) {
        for (int64_t r = 0; r < count; ++r)
          for (int64_t i = 0; i < bytes; ++i) {
            const auto pair = uint8_t(from[(first + r * step) * bytes + i]);
            to[(r * bytes + i) * 2] = pair & 15, to[(r * bytes + i) * 2 + 1] = pair >> 4;
          }
      };
}

int64_t ScaleGrid::row_index(int64_t row) const {
  if (matrix_rows == 0) return row / rows * row_stride;
  return row / matrix_rows * matrix_stride + row % matrix_rows / rows * row_stride;
}

int64_t ScaleGrid::index(int64_t row, int64_t group, int64_t k) const {
  return flat ? row * (k / columns) + group : row_index(row) + group * column_stride;
}

int64_t CodedWeight::rows() const {
  int64_t out = 1;
  for (size_t d = 0; d + 1 < shape.size(); ++d) out *= shape[d];
  return out;
}

int64_t CodedWeight::bytes() const {
  int64_t out = 0;
  for (const auto& [name, part] : parts) out += int64_t(part.bytes.size());
  return out;
}

void CodedWeight::decode(int64_t first, int64_t step, int64_t count, float* to) const {
  const int64_t in = k();
  if (codes) {
    codes(first, step, count, to);
  } else {
    thread_local kernels::Scratch<uint8_t> of_thread;
    uint8_t* const found = of_thread.at_least(count * in);
    if (bytes_of_rows) {
      const std::array<float, 256> values = values_of_bytes(byte_codes);
      bytes_of_rows(first, step, count, found);
      for (int64_t i = 0; i < count * in; ++i) to[i] = values[found[i]];
    } else {
      indices(first, step, count, found);
      for (int64_t i = 0; i < count * in; ++i) to[i] = table[found[i]];
    }
  }
  const auto scaled = [&](float* values, int64_t size, int64_t index) {
    const float s = scale(index);
    if (zero) {
      const float z = zero(index);
      for (int64_t i = 0; i < size; ++i) values[i] = (values[i] - z) * s;
    } else {
      for (int64_t i = 0; i < size; ++i) values[i] *= s;
    }
    if (offset) {
      const float shift = offset(index);
      for (int64_t i = 0; i < size; ++i) values[i] += shift;
    }
    if (factor != 1)
      for (int64_t i = 0; i < size; ++i) values[i] *= factor;
  };
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = first + r * step;
    float* const values = to + r * in;
    if (grid.flat) {
      for (int64_t i = 0, size = 0; i < in; i += size) {
        const int64_t at = row * in + i;
        size = std::min(in - i, grid.columns - at % grid.columns);
        scaled(values + i, size, at / grid.columns);
      }
    } else if (!grid.group_of_column.empty()) {
      for (int64_t i = 0; i < in; ++i)
        scaled(values + i, 1, grid.row_index(row) + grid.group_of_column[size_t(i)] * grid.column_stride);
    } else {
      for (int64_t i = 0, group = 0; i < in; i += grid.columns, ++group)
        scaled(values + i, std::min(in - i, grid.columns), grid.row_index(row) + group * grid.column_stride);
    }
    round_row(values, in, rounding);
  }
}

void CodedWeight::check_scales() const {
  for (int64_t i = 0; i < scales; ++i) {
    if (const float value = scale(i); !std::isfinite(value) || (value < 0 && !signed_scales))
      refuse(where, str("scale ", i, " is ", value),
             str("a scale is a finite number", signed_scales ? "" : " that is not negative", "; fetch the file again"));
    if (offset && !std::isfinite(offset(i)))
      refuse(where, str("offset ", i, " is ", offset(i)), "an offset is a finite number; fetch the file again");
  }
}

}  // namespace easydel::quant
