// Number formats of weights by the words of `quantization_method`: how many bits a value has, and how many share a
// scale. What makes codes of values is quantize.h's business, and which weights are quantized nn/quantization.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "easydel/kernels/quantized.h"

namespace easydel::quant {

// As the configuration says it.
struct FormatConfig {
  std::string method = "nf4";
  std::optional<int64_t> group_size = {};  // values that share a scale; nothing: the method's own
  std::optional<int64_t> bits = {};        // nothing: the method's usual ones
};

// nf4, fp4        four bits through a table, as bitsandbytes makes them: groups of 64 of the flat weight, scale max|w|
// a4q             four bits, whole numbers from -8 to 7, groups of 64, scale max|w| / 8 with the sign that uses -8;
//                 activations in bytes
// a8q             eight bits, whole numbers from -127 to 127, groups of 32, scale max|w| / 127; activations in bytes
// a8bit           the same with one scale for a whole row, unless group_size says otherwise
// 8bit            the codes of a8bit with plain activations
// affine          2 to 8 bits with a scale and a zero for each group of 64 (made_codes.h, as the rest)
// mxfp4, mxfp8    e2m1, e4m3 with a power of two for each group of 32
// nvfp4, nvfp8    the same with a scale in e4m3 for each group of 16
// ternary, binary signs without a scale
// Groups are cut from a weight's row, which belongs to one output, where nothing else is said; the last may be shorter.
struct Format {
  std::string name;
  kernels::QuantizedSpec spec;
};

// Whether the format says how many values share a scale (mxfp4: 32), so that group_size cannot.
bool has_fixed_groups(std::string_view method);

// UserError, at a key below `where`, for what is no such format or has no kernel yet.
Format format_of(const FormatConfig& config, const std::string& where);

}  // namespace easydel::quant
