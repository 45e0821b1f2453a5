// Products with weights of one byte or half a byte an element: y = x W^T, forward only.
//
// Promise: as product.h's, a row of y has the same bits in any company, on any number of threads and instruction set. k
// is cut into groups that share a scale. Of one element of y:
//   bytes   x is rounded to whole numbers from -127 to 127, one scale a row (greatest size / 127; a row below 2^-100
//           counts as zero, one that is not finite becomes NaN). Within a group the sum is exact; the groups are one
//           chain of FMAs, sum x scale; the row's scale comes last.
//   codes   an element is table[code] x scale. Within a group table[code] x x is summed in the order of product.h that
//           is asked for; those of bf16 round the table and x to bf16. The groups are one chain of FMAs, sum x scale.
// A bias is added once, at the end.
#pragma once

#include <array>

#include "easydel/kernels/product.h"

namespace easydel::kernels {

using CodeTable = std::array<float, 16>;

// The quantiles of the normal distribution (arXiv 2305.14314, appendix E), and whole numbers from -8 to 7.
const CodeTable& nf4_table();
const CodeTable& q4_table();

enum class Codes : uint8_t { bytes, table4 };

struct QuantizedSpec {
  Codes codes = Codes::bytes;
  int64_t group = 0;  // k of one scale, a multiple of 32; 0: all of a row
  CodeTable table{};  // table4
};

// A weight W [n, k] as products read it; see quantized_layout.h.
class QuantizedWeight {
 public:
  QuantizedWeight() = default;
  QuantizedWeight(int64_t n, int64_t k, const QuantizedSpec& spec);  // contents are not set yet; k at most 131072

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  const QuantizedSpec& spec() const { return spec_; }
  int64_t groups() const;  // of a row
  int64_t bytes() const;
  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }

 private:
  int64_t n_ = 0, k_ = 0;
  QuantizedSpec spec_;
  Buffer<uint8_t> data_;
};

// From codes [n, k] (bytes: as int8_t, -127 to 127; table4: 0 to 15) and scales [n, groups].
QuantizedWeight pack_codes(Executor& executor, const uint8_t* codes, const float* scales, int64_t n, int64_t k,
                           const QuantizedSpec& spec);
// And back.
void unpack_codes(Executor& executor, const QuantizedWeight& w, uint8_t* codes, float* scales);

// The nearest codes to row-major w; of two as near the even one, of a table, which must ascend, the lower. The scale of
// a group is its greatest size over the table's (bytes: over 127); it has the sign that makes the table's longer side
// the one that is used.
QuantizedWeight quantize(Executor& executor, Input w, int64_t n, int64_t k, const QuantizedSpec& spec);

// w [n, k]: code x scale in fp32, rounded once if it is bf16.
void dequantize(Executor& executor, const QuantizedWeight& w, Output to);

// y [m, n] = x [m, k] W^T + bias [n] (null: none). `order` is for table4.
void product(Executor& executor, const QuantizedWeight& w, Input x, int64_t m, Output y, const float* bias,
             Order order);

}  // namespace easydel::kernels
