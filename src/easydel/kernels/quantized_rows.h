// Some rows of a quantized weight as values.
#pragma once

#include "easydel/kernels/quantized.h"

namespace easydel::kernels {

// Rows [first, first + count) of dequantize(): `to` is [count, k]. Whole panels are faster: `first` a multiple of 32.
void dequantize_rows(Executor& executor, const QuantizedWeight& w, int64_t first, int64_t count, Output to);

}  // namespace easydel::kernels
