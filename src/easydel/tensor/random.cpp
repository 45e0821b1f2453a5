#include "easydel/tensor/random.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <numbers>

#include "easydel/base/error.h"

namespace easydel::tensor {

Key key_of(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : name) hash = (hash ^ uint8_t(c)) * 0x100000001b3ull;
  const auto mixed = philox({uint32_t(seed), uint32_t(seed >> 32)}, hash);
  return {mixed[0], mixed[1]};
}

std::array<uint32_t, 4> philox(Key key, uint64_t counter, uint64_t counter_high) {
  std::array<uint32_t, 4> c = {uint32_t(counter), uint32_t(counter >> 32), uint32_t(counter_high),
                               uint32_t(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(0xD2511F53u) * c[0], b = uint64_t(0xCD9E8D57u) * c[2];
    c = {uint32_t(b >> 32) ^ c[1] ^ key.low, uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ key.high, uint32_t(a)};
    key.low += 0x9E3779B9u;
    key.high += 0xBB67AE85u;
  }
  return c;
}

namespace {

// Box-Muller; the first number is in (0, 1], so that its logarithm is finite.
std::array<float, 4> normals(Key key, uint64_t counter) {
  const auto bits = philox(key, counter);
  std::array<float, 4> out;
  for (int i = 0; i < 4; i += 2) {
    const double u = (double(bits[i]) + 1.0) * 0x1p-32, v = double(bits[i + 1]) * 0x1p-32;
    const double radius = std::sqrt(-2.0 * std::log(u)), angle = 2.0 * std::numbers::pi * v;
    out[i] = float(radius * std::cos(angle));
    out[i + 1] = float(radius * std::sin(angle));
  }
  return out;
}

}  // namespace

namespace {

// Global index of the first element of a row of a slice.
int64_t row_begin(const Tensor& out, int64_t row, at::IntArrayRef shape, at::IntArrayRef begin) {
  int64_t index = out.dim() ? begin.back() : 0, stride = out.dim() ? shape.back() : 1;
  for (int64_t d = out.dim() - 2; d >= 0; --d) {
    index += (begin[d] + row % out.size(d)) * stride;
    row /= out.size(d);
    stride *= shape[d];
  }
  return index;
}

}  // namespace

void fill_normal(const Tensor& out, Key key, double deviation, at::IntArrayRef shape, at::IntArrayRef begin) {
  check(out.dim() == int64_t(shape.size()) && begin.size() == shape.size(), "fill_normal: slice and shape disagree");
  if (out.numel() == 0) return;
  Tensor values = at::empty(out.sizes(), at::TensorOptions().dtype(at::kFloat));
  float* data = values.mutable_data_ptr<float>();
  const int64_t columns = out.dim() ? out.size(-1) : 1, rows = out.numel() / columns;
  at::parallel_for(0, rows, 64, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const int64_t index = row_begin(out, row, shape, begin);
      std::array<float, 4> block{};
      for (int64_t i = 0; i < columns; ++i) {
        const int64_t element = index + i;
        if (i == 0 || element % 4 == 0) block = normals(key, uint64_t(element / 4));
        data[row * columns + i] = float(deviation) * block[element % 4];
      }
    }
  });
  out.copy_(values);
}

void fill_each(const Tensor& out, Key key, const std::function<double(int64_t last, double uniform)>& element,
               at::IntArrayRef shape, at::IntArrayRef begin) {
  check(out.dim() == int64_t(shape.size()) && begin.size() == shape.size(), "fill_each: slice and shape disagree");
  if (out.numel() == 0) return;
  const Tensor values = at::empty(out.sizes(), at::TensorOptions().dtype(at::kFloat));
  float* const data = values.mutable_data_ptr<float>();
  const int64_t columns = out.dim() ? out.size(-1) : 1, rows = out.numel() / columns,
                first = out.dim() ? begin.back() : 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t index = row_begin(out, row, shape, begin);
    for (int64_t i = 0; i < columns; ++i) {
      const uint64_t at = uint64_t(index + i);
      data[row * columns + i] = float(element(first + i, uniform(philox(key, at / 4)[at % 4])));
    }
  }
  out.copy_(values);
}

}  // namespace easydel::tensor
