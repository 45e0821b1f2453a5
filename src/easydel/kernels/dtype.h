// Dtypes as kernels see them: bf16 as bits, and matrices given by pointer, dtype and stride.
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

enum class DType : uint8_t { f32, bf16 };
constexpr int64_t bytes_of(DType dtype) { return dtype == DType::f32 ? 4 : 2; }

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
