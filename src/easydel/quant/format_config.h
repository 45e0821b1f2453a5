// Number formats of weights by the words of `quantization_method`: how many bits a value has, and how many share a
// scale. What makes codes of values is quantize.h's business, and which weights are quantized nn/quantization.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "easydel/kernels/quantized.h"

namespace easydel::quant {

// As the configuration says it.
struct FormatConfig {
  std::string method = "nf4";              // nf4, 8bit, a8bit, a8q, a4q
  std::optional<int64_t> group_size = {};  // values that share a scale; nothing: the method's own
  std::optional<int64_t> bits = {};        // must be the method's own
};

// nf4     four bits, the quantiles of the normal distribution (arXiv 2305.14314), groups of 64, scale max|w|
// a4q     four bits, whole numbers from -8 to 7, groups of 64, scale max|w| / 8 with the sign that uses -8
// a8q     eight bits, whole numbers from -127 to 127, groups of 32, scale max|w| / 127
// 8bit,
// a8bit   the same with one scale for a whole row, unless group_size says otherwise
// Groups are cut from a weight's row, which belongs to one output; the last may be shorter.
struct Format {
  std::string name;
  kernels::QuantizedSpec spec;
};

// UserError, at a key below `where`, for what is no such format or has no kernel yet.
Format format_of(const FormatConfig& config, const std::string& where);

}  // namespace easydel::quant
