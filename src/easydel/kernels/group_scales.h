// Reads the scales of packed codes. Included by the loops of instruction sets only.
#pragma once

#include "easydel/kernels/quantized_layout.h"

namespace easydel::kernels {

// The scales of the columns of a group that begin with `column`, as many as V holds.
template <class V>
[[gnu::always_inline]] inline typename V::F scales_of(const QuantizedStep& step, const uint8_t* group, int64_t column) {
  return step.short_scales ? V::load(reinterpret_cast<const bf16*>(group) + column)
                           : V::load(reinterpret_cast<const float*>(group) + column);
}

}  // namespace easydel::kernels
