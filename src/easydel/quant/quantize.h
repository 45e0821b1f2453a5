// From the values of a weight to its codes, by the kernels' loops.
#pragma once

#include <memory>

#include "easydel/quant/format_config.h"
#include "easydel/tensor/torch.h"

namespace easydel::quant {

using Codes = std::shared_ptr<const kernels::QuantizedWeight>;

// values [out, in], on a CPU, of any floating type: each code the nearest to its value over the group's scale.
Codes quantize(const Tensor& values, const Format& format);

// Codes int64 [out, in]: whole numbers, or places in the table; scales fp32 [out, groups].
struct Unpacked {
  Tensor codes, scales;
};
Unpacked unpack(const kernels::QuantizedWeight& weight);

// What is left of the values in the format, in their own number type.
Tensor rounded(const Tensor& values, const Format& format);

}  // namespace easydel::quant
