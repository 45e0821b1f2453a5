// Rows of codes with their scales, for the tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "easydel/kernels/key_pages.h"
#include "kernels/support.h"

namespace easydel::kernels::testing {

inline std::string name_of(DType codes) { return codes == DType::i8 ? "int8" : codes == DType::i4 ? "int4" : "e4m3"; }

// [tokens, heads, bytes of dim codes], and the scales [tokens, heads, groups].
struct CodedRows {
  DType codes = DType::i8;
  int64_t heads = 0, dim = 0;
  std::vector<uint8_t> data;
  std::vector<float> scales;
  int64_t groups = 1;

  int64_t tokens() const { return int64_t(scales.size()) / (heads * groups); }
  int64_t row_bytes() const { return kernels::row_bytes(codes, dim); }
  float code(int64_t row, int64_t i) const {
    const uint8_t* const own = data.data() + row * row_bytes();
    if (codes == DType::i4) {
      // Written out once more: 32 codes are 16 low halves, then 16 high ones; the last 2 n or 2 n - 1 are n and the
      // rest.
      const int64_t block = i / 32, half = std::min<int64_t>(16, (dim - 32 * block + 1) / 2), at = i - 32 * block;
      const uint8_t bits = own[16 * block + (at < half ? at : at - half)];
      return float(at < half ? bits % 16 : bits / 16) - 8;
    }
    return codes == DType::i8 ? float(int8_t(own[i])) : widen(e4m3{own[i]});
  }
  std::vector<float> decoded() const {
    std::vector<float> out;
    for (int64_t r = 0; r < tokens() * heads; ++r)
      for (int64_t i = 0; i < dim; ++i) out.push_back(code(r, i) * scales[size_t(r * groups + i * groups / dim)]);
    return out;
  }
  // As keys or values; page_tokens: of pages, 0 without.
  Heads all(int64_t page_tokens) const {
    const int64_t bytes = row_bytes();
    return {data.data(),
            codes,
            heads * bytes,
            bytes,
            page_tokens * heads * bytes,
            {scales.data(), heads * groups, groups, page_tokens * heads * groups, groups}};
  }
  // The same with token t as token t % page_tokens of page pages[t / page_tokens]; the other scales are NaN.
  CodedRows in_pages(const std::vector<int32_t>& pages, int64_t page_tokens) const {
    CodedRows out{codes, heads, dim, {}, {}, groups};
    const size_t all_tokens = pages.size() * size_t(page_tokens);
    const int64_t bytes = heads * row_bytes();
    out.data.assign(all_tokens * size_t(bytes), 0x7f), out.scales.assign(all_tokens * size_t(heads * groups), NAN);
    for (int64_t t = 0; t < tokens(); ++t) {
      const int64_t to = pages[size_t(t / page_tokens)] * page_tokens + t % page_tokens;
      std::copy_n(data.begin() + t * bytes, bytes, out.data.begin() + to * bytes);
      std::copy_n(scales.begin() + t * heads * groups, heads * groups, out.scales.begin() + to * heads * groups);
    }
    return out;
  }
};

// Codes of x [tokens, heads, dim], made by write_pages.
template <class T>
CodedRows encoded(const std::vector<T>& x, int64_t heads, int64_t dim, DType codes,
                  Executor& executor = serial_executor(), int64_t groups = 1) {
  const int64_t tokens = int64_t(x.size()) / (heads * dim);
  const int64_t bytes = row_bytes(codes, dim);
  CodedRows out{codes,
                heads,
                dim,
                std::vector<uint8_t>(size_t(tokens * heads * bytes)),
                std::vector<float>(size_t(tokens * heads * groups)),
                groups};
  PagedRows rows;
  rows.from = {x.data(), std::is_same_v<T, float> ? DType::f32 : DType::bf16, heads * dim, dim};
  rows.to = {out.data.data(), codes, heads * bytes, bytes};
  rows.scales = out.scales.data(), rows.scale_token_stride = heads * groups, rows.scale_head_stride = groups;
  rows.heads = heads, rows.dim = dim, rows.groups = groups;
  std::vector<PagePlace> places;
  for (int64_t t = 0; t < tokens; ++t) places.push_back({0, int32_t(t)});
  write_pages(executor, {&rows, 1}, places);
  return out;
}

}  // namespace easydel::kernels::testing
