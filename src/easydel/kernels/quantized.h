// Products with weights of 8-bit or 4-bit codes: y = x W^T, forward only.
//
// Promise: like product.h's, a row of y has the same bits for any other rows, number of threads and instruction set. k
// is cut into groups that share a scale. For one element of y:
//   bytes, nibbles
//           x is rounded to integers from -127 to 127, with one scale per row (max |x| / 127; a row below 2^-100
//           counts as zero, a row that is not finite becomes NaN). The sum within a group is exact; the groups are one
//           chain of FMAs, sum x scale; the row's scale is applied last.
//   codes   an element is table[code] x scale. Within a group table[code] x x is summed in the given order
//   (accumulation_order.h);
//           the bf16 orders round the table and x to bf16. The groups are one chain of FMAs, sum x scale. With zeros an
//           element is (table[code] - zero) x scale, with offsets table[code] x scale + offset: then an FMA for each
//           group follows, of -zero x scale or of the offset with the group's sum of x. That is sixteen chains, of
//           every sixteenth element, added in pairs: those 8 apart, 4, 2, 1.
// A bias is added once, at the end.
#pragma once

#include <array>

#include "easydel/kernels/code_numbers.h"
#include "easydel/kernels/product.h"

namespace easydel::kernels {

using CodeTable = std::array<float, 16>;

// Quantiles of the normal distribution (arXiv 2305.14314, appendix E), and the integers from -8 to 7.
const CodeTable& nf4_table();
const CodeTable& q4_table();

// nibbles: whole numbers from -8 to 7.
enum class Codes : uint8_t { bytes, table4, nibbles };
// Whether x is rounded to bytes, too.
constexpr bool meets_bytes(Codes codes) { return codes != Codes::table4; }

struct QuantizedSpec {
  Codes codes = Codes::bytes;
  int64_t group = 0;                       // k per scale, a multiple of 32; 0: the whole row
  CodeTable table{};                       // of table4
  CodeShift shift = CodeShift::none;       // of table4
  CodeNumbers numbers = CodeNumbers::f32;  // what scales, zeros and offsets are kept as; pack_codes finds out
};

// A weight W [n, k] in the layout that products read; see quantized_layout.h.
class QuantizedWeight {
 public:
  QuantizedWeight() = default;
  QuantizedWeight(int64_t n, int64_t k, const QuantizedSpec& spec);  // contents are uninitialized; k <= 131072

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  const QuantizedSpec& spec() const { return spec_; }
  int64_t groups() const;  // per row
  int64_t bytes() const;
  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }

 private:
  int64_t n_ = 0, k_ = 0;
  QuantizedSpec spec_;
  Buffer<uint8_t> data_;
};

// From codes [n, k] (bytes: int8_t, -127 to 127; nibbles: int8_t, -8 to 7; table4: 0 to 15), scales [n, groups], and
// zeros or offsets [n, groups] if the spec has them.
QuantizedWeight pack_codes(Executor& executor, const uint8_t* codes, const float* scales, const float* shifts,
                           int64_t n, int64_t k, const QuantizedSpec& spec);
// The inverse of pack_codes, without zeros and offsets.
void unpack_codes(Executor& executor, const QuantizedWeight& w, uint8_t* codes, float* scales);

// The rows [first, first + n) of w in its layout: `first` is a multiple of rows_of_panel.
constexpr int64_t rows_of_panel = 32;
QuantizedWeight rows_of(const QuantizedWeight& w, int64_t first, int64_t n);

// Rounds row-major w to the nearest codes; ties go to the even integer (bytes) or to the lower entry of the table,
// which must ascend (nibbles: to the lower number, as with q4_table()). A group's scale is its largest magnitude over
// the table's (bytes: over 127), with the sign that uses the longer side of the table.
QuantizedWeight quantize(Executor& executor, Input w, int64_t n, int64_t k, const QuantizedSpec& spec);

// w [n, k] = code x scale in fp32 (with zeros and offsets as above), rounded once if w is bf16.
void dequantize(Executor& executor, const QuantizedWeight& w, Output to);

// y [m, n] = x [m, k] W^T + bias [n] (null: none). `order` applies to table4.
void product(Executor& executor, const QuantizedWeight& w, Input x, int64_t m, Output y, const float* bias,
             AccumulationOrder order);

}  // namespace easydel::kernels
