// Quantizes the values of a weight to codes, by the kernels' loops.
#pragma once

#include <memory>

#include "easydel/quant/format_config.h"
#include "easydel/tensor/torch.h"

namespace easydel::quant {

using Codes = std::shared_ptr<const kernels::QuantizedWeight>;

// values [out, in], on a CPU, of any floating dtype. Each value gets the code nearest to value / scale of its group.
Codes quantize(const Tensor& values, const Format& format);

// Codes int64 [out, in]: integers, or indices of the table; scales fp32 [out, groups].
struct Unpacked {
  Tensor codes, scales;
};
Unpacked unpack(const kernels::QuantizedWeight& weight);

// The values rounded to the format, in their own dtype.
Tensor rounded(const Tensor& values, const Format& format);

}  // namespace easydel::quant
