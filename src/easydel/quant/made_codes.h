// Codes of weights that are made here, by the rules of the words of quantization_method: bitsandbytes' for nf4 and fp4,
// EasyDeL 0.3's for affine, mxfp4, mxfp8, nvfp4, nvfp8, ternary and binary. Formats that kernels quantize themselves
// (8bit, a8bit, a8q, a4q) are not here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/kernels/executor.h"
#include "easydel/quant/coded_weight.h"
#include "easydel/quant/format_config.h"

namespace easydel::quant {

// What the name of a format says besides its kernels' spec.
struct CodeRule {
  std::string method;         // as the configuration calls it
  int bits = 4;               // of a code
  int64_t group = 0;          // values that share a scale; 0: a row
  bool double_quant = false;  // nf4 and fp4: scales are codes, too
};
CodeRule rule_of(const Format& format);
// True if make_codes() makes them.
bool is_made_here(const CodeRule& rule);
// The same format with scales in codes. UserError, at `where`, if it is not nf4 or fp4.
Format with_double_quantization(Format format, const std::string& where);

struct MadeCodes {
  std::vector<uint8_t> codes;        // [n, k], one in a byte
  std::vector<float> scales, zeros;  // [n, groups], or of flat blocks; no zeros: all are 0
  std::vector<uint8_t> scale_codes;  // of mxfp (the exponent, two's complement), nvfp (e4m3) and double quantization
};
// values [n, k] row by row. The last group of a row may be shorter. `mean`: torch's mean of numbers, for double
// quantization.
MadeCodes make_codes(kernels::Executor& executor, const CodeRule& rule, const float* values, int64_t n, int64_t k,
                     float (*mean)(const std::vector<float>&));

// The format of bitsandbytes' 4-bit codes, with scales in fp32; nothing: the weight is in others.
std::optional<Format> four_bit_format(const CodedWeight& weight);

// The weight [n, k] that the codes stand for, its codes packed in their bits.
std::shared_ptr<CodedWeight> coded_weight(const CodeRule& rule, MadeCodes made, int64_t n, int64_t k);

}  // namespace easydel::quant
