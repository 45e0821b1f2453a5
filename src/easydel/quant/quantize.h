// Quantizes the values of a weight to codes: by the kernels' loops, or by the rules of made_codes.h.
#pragma once

#include <memory>
#include <vector>

#include "easydel/ops/product.h"
#include "easydel/quant/coded_weight.h"
#include "easydel/quant/file_codes.h"
#include "easydel/quant/format_config.h"
#include "easydel/tensor/torch.h"

namespace easydel::quant {

using Codes = std::shared_ptr<const kernels::QuantizedWeight>;

// values [out, in], on a CPU, of any floating dtype. Each value gets the code nearest to value / scale of its group.
// For formats whose codes kernels read in groups of rows; others are Bugs.
Codes quantize(const Tensor& values, const Format& format);

// values [out, in] in any format, as products in the dtype `compute` read them. 8bit, affine, mxfp8, nvfp4, nvfp8, and
// blocks of nf4 and fp4 that go on from row to row are decoded by products.
ops::Matrix coded(const Tensor& values, const Format& format, at::ScalarType compute);
int64_t bytes_of(const ops::Matrix& codes);

// The codes of coded(), to be written to files. `format` is the one that they were made in, and has no zeros.
WeightCodes codes_of(const ops::Matrix& matrix, const Format& format);

// Codes int64 [out, in]: integers, or indices of the table; scales fp32 [out, groups].
struct Unpacked {
  Tensor codes, scales;
};
Unpacked unpack(const kernels::QuantizedWeight& weight);

// `n` rows of a weight in the codes of a file, from row `first` on, `step` apart, as products in the dtype `compute`
// read them. Four-bit codes whose groups the kernels know are packed for them, if that loses nothing or `compute` is
// bf16 and rounds values anyway; others stay in the file and are decoded by products.
ops::Matrix matrix_of(const std::shared_ptr<const CodedWeight>& weight, int64_t n, int64_t first, int64_t step,
                      at::ScalarType compute);
// The values of a weight in the codes of a file, in its shape: in the dtype in which its format computes them, exactly.
Tensor values_of(const std::shared_ptr<const CodedWeight>& weight);

// torch's mean of numbers in fp32, in the order of one thread.
float mean_of(const std::vector<float>& numbers);

// The values rounded to the format, in their own dtype.
Tensor rounded(const Tensor& values, const Format& format);

}  // namespace easydel::quant
