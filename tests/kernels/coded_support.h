// Rows of codes with their scales, for the tests.
#pragma once

#include <vector>

#include "easydel/kernels/key_pages.h"
#include "kernels/support.h"

namespace easydel::kernels::testing {

// [tokens, heads, dim], and the scales [tokens, heads].
struct CodedRows {
  DType codes = DType::i8;
  int64_t heads = 0, dim = 0;
  std::vector<uint8_t> data;
  std::vector<float> scales;

  int64_t tokens() const { return int64_t(scales.size()) / heads; }
  float code(int64_t row, int64_t i) const {
    const uint8_t bits = data[size_t(row * dim + i)];
    return codes == DType::i8 ? float(int8_t(bits)) : widen(e4m3{bits});
  }
  std::vector<float> decoded() const {
    std::vector<float> out;
    for (int64_t r = 0; r < tokens() * heads; ++r)
      for (int64_t i = 0; i < dim; ++i) out.push_back(code(r, i) * scales[size_t(r)]);
    return out;
  }
  // As keys or values; page_tokens: of pages, 0 without.
  Heads all(int64_t page_tokens) const {
    return {data.data(),
            codes,
            heads * dim,
            dim,
            page_tokens * heads * dim,
            {scales.data(), heads, 1, page_tokens * heads}};
  }
  // The same with token t as token t % page_tokens of page pages[t / page_tokens]; the other scales are NaN.
  CodedRows in_pages(const std::vector<int32_t>& pages, int64_t page_tokens) const {
    CodedRows out{codes, heads, dim, {}, {}};
    const size_t all_tokens = pages.size() * size_t(page_tokens);
    out.data.assign(all_tokens * size_t(heads * dim), 0x7f), out.scales.assign(all_tokens * size_t(heads), NAN);
    for (int64_t t = 0; t < tokens(); ++t) {
      const int64_t to = pages[size_t(t / page_tokens)] * page_tokens + t % page_tokens;
      std::copy_n(data.begin() + t * heads * dim, heads * dim, out.data.begin() + to * heads * dim);
      std::copy_n(scales.begin() + t * heads, heads, out.scales.begin() + to * heads);
    }
    return out;
  }
};

// Codes of x [tokens, heads, dim], made by write_pages.
template <class T>
CodedRows encoded(const std::vector<T>& x, int64_t heads, int64_t dim, DType codes,
                  Executor& executor = serial_executor()) {
  const int64_t tokens = int64_t(x.size()) / (heads * dim);
  CodedRows out{codes, heads, dim, std::vector<uint8_t>(x.size()), std::vector<float>(size_t(tokens * heads))};
  PagedRows rows;
  rows.from = {x.data(), std::is_same_v<T, float> ? DType::f32 : DType::bf16, heads * dim, dim};
  rows.to = {out.data.data(), codes, heads * dim, dim};
  rows.scales = out.scales.data(), rows.scale_token_stride = heads, rows.scale_head_stride = 1;
  rows.heads = heads, rows.dim = dim;
  std::vector<PagePlace> places;
  for (int64_t t = 0; t < tokens; ++t) places.push_back({0, int32_t(t)});
  write_pages(executor, {&rows, 1}, places);
  return out;
}

}  // namespace easydel::kernels::testing
