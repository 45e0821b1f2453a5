// Dtypes as kernels see them: bf16 and e4m3 as bits, and matrices given by pointer, dtype and stride.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace easydel::kernels {

struct bf16 {  // same layout as c10::BFloat16
  uint16_t bits;
};

inline float widen(bf16 x) { return std::bit_cast<float>(uint32_t(x.bits) << 16); }
inline float widen(float x) { return x; }

// Rounds to nearest, ties to even; NaN becomes 0x7fc0. Denormals are kept.
inline bf16 narrow(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  return {std::isnan(x) ? uint16_t(0x7fc0) : uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}

// Four bits of exponent and three of mantissa, up to 448 ("E4M3FN" of the OCP 8-bit floating point specification). The
// code of its NaN is never written here.
struct e4m3 {  // same layout as c10::Float8_e4m3fn
  uint8_t bits;
};

inline float widen(int8_t x) { return float(x); }
inline float widen(e4m3 x) {
  const uint32_t size = x.bits & 0x7fu, sign = uint32_t(x.bits & 0x80u) << 24;
  const float y = size < 8 ? float(size) * 0x1p-9f : std::bit_cast<float>((size << 20) + (120u << 23));
  return std::bit_cast<float>(std::bit_cast<uint32_t>(y) | sign);
}

// Rounds to nearest, ties to even. |x| is at most 448.
inline e4m3 narrow_e4m3(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), size = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
  constexpr float unit = 0x1p14f;  // its last place is 2^-9, the smallest e4m3
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + unit) - std::bit_cast<uint32_t>(unit);
  const uint32_t large = ((size + 0x7ffffu + (size >> 20 & 1u)) >> 20) - (120u << 3);
  return {uint8_t(sign | (size < (121u << 23) ? small : large))};
}

// Two whole numbers from -7 to 7, each plus 8: the first in the low half. Of every 32 codes of a row, byte j has code j
// and code 16 + j, so that vectors of codes are in order; the last ones, if fewer, are cut into halves in the same way.
struct i4_pair {
  uint8_t bits;
};

// i8 and e4m3 are codes of cached keys and values, i4 of values: an element is code x scale. Where rows are i4,
// addresses and strides count bytes (i4_pair).
enum class DType : uint8_t { f32, bf16, i8, e4m3, i4 };
constexpr bool is_coded(DType dtype) { return dtype >= DType::i8; }
// Codes that are whole numbers.
constexpr bool is_whole(DType dtype) { return dtype == DType::i8 || dtype == DType::i4; }
// Of an element; i4: of an i4_pair.
constexpr int64_t bytes_of(DType dtype) { return dtype == DType::f32 ? 4 : dtype == DType::bf16 ? 2 : 1; }
// Of a row of `count` elements.
constexpr int64_t row_bytes(DType dtype, int64_t count) {
  return dtype == DType::i4 ? (count + 1) / 2 : count * bytes_of(dtype);
}

constexpr int64_t i4_block = 32;  // codes
// The place of code `i` in a row of `count`: its byte, and whether it is in the high half.
struct I4Place {
  int64_t byte;
  bool high;
};
constexpr I4Place i4_place(int64_t i, int64_t count) {
  const int64_t first = i / i4_block * i4_block, rest = count - first;
  const int64_t half = rest < i4_block ? (rest + 1) / 2 : i4_block / 2, within = i - first;
  return {first / 2 + within % half, within >= half};
}

// A row-major matrix that is read. Elements of a row are contiguous; `stride` is the distance of two rows in elements.
struct Input {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t stride = 0;

  Input() = default;
  Input(const float* x, int64_t row_stride) : data(x), stride(row_stride) {}
  Input(const bf16* x, int64_t row_stride) : data(x), dtype(DType::bf16), stride(row_stride) {}
  Input(const void* x, DType n, int64_t row_stride) : data(x), dtype(n), stride(row_stride) {}

  const void* at(int64_t row, int64_t column = 0) const {
    return static_cast<const char*>(data) + (row * stride + column) * bytes_of(dtype);
  }
};

// A row-major matrix that is written.
struct Output {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t stride = 0;

  Output() = default;
  Output(float* x, int64_t row_stride) : data(x), stride(row_stride) {}
  Output(bf16* x, int64_t row_stride) : data(x), dtype(DType::bf16), stride(row_stride) {}
  Output(void* x, DType n, int64_t row_stride) : data(x), dtype(n), stride(row_stride) {}

  void* at(int64_t row, int64_t column = 0) const {
    return static_cast<char*>(data) + (row * stride + column) * bytes_of(dtype);
  }
  operator Input() const { return {data, dtype, stride}; }
};

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

}  // namespace easydel::kernels
