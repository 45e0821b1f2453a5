// Values as integers of few bits: value = (code - zero) * scale, a scale for each group of a row, rounded to nearest
// (ties to the even integer) and clamped.
#pragma once

#include <cstdint>

#include "easydel/kernels/executor.h"

namespace easydel::quant {

struct IntegerCodes {
  int bits = 8;            // codes are -2^(bits - 1) to 2^(bits - 1) - 1
  int64_t group = 0;       // values of a row that share a scale; 0: the whole row. The last group may be shorter
  float divisor = 127.0f;  // without zeros: a group's scale is its largest magnitude / divisor
  bool has_zeros = false;  // the group's range from its least to its greatest value is mapped to all codes

  int64_t groups(int64_t k) const { return group > 0 ? (k + group - 1) / group : 1; }
};

// values [n, k] row by row; codes [n, k]; scales and zeros [n, groups]; zeros may be null without has_zeros. A group of
// zeros has the scale 0 and the codes 0; with zeros a group of equal values is written as one.
void quantize_integers(kernels::Executor& executor, const IntegerCodes& rule, const float* values, int64_t n, int64_t k,
                       int8_t* codes, float* scales, int8_t* zeros);

}  // namespace easydel::quant
