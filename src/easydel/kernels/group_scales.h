// Reads the scales of packed codes, and what shifts their values. Included by the loops of instruction sets only.
#pragma once

#include "easydel/kernels/quantized_layout.h"

namespace easydel::kernels {

// The scales of the columns of a group that begin with `column`, as many as V holds.
template <class V>
[[gnu::always_inline]] inline typename V::F numbers_of(CodeNumbers type, const uint8_t* numbers, int64_t column) {
  switch (type) {
    case CodeNumbers::bf16:
      return V::load(reinterpret_cast<const bf16*>(numbers) + column);
    case CodeNumbers::f16:
      return V::load_halves(numbers + 2 * column);
    case CodeNumbers::f32:
      return V::load(reinterpret_cast<const float*>(numbers) + column);
  }
  __builtin_unreachable();
}
template <class V>
[[gnu::always_inline]] inline typename V::F scales_of(const QuantizedStep& step, const uint8_t* group, int64_t column) {
  return numbers_of<V>(step.numbers, group, column);
}
// Their zeros or offsets.
template <class V>
[[gnu::always_inline]] inline typename V::F shifts_of(const QuantizedStep& step, const uint8_t* group, int64_t column) {
  return numbers_of<V>(step.numbers, group + step.scale_bytes, column);
}

// What a group adds to the elements of its columns in one row: `sum`, of codes, by its scale, and the sum of x by what
// the values are shifted.
template <class V>
struct GroupOfColumns {
  using F = typename V::F;
  F scale, shift;
  bool shifts;

  [[gnu::always_inline]] GroupOfColumns(const QuantizedStep& step, const uint8_t* group, int64_t column)
      : scale(scales_of<V>(step, group, column)), shift(V::zero()), shifts(step.shift != CodeShift::none) {
    if (!shifts) return;
    shift = shifts_of<V>(step, group, column);
    if (step.shift == CodeShift::zeros) shift = V::mul(V::sub(V::zero(), shift), scale);
  }
  // `before` and what group g adds to row `row`.
  [[gnu::always_inline]] F add(const QuantizedStep& step, int64_t row, int64_t g, F sum, F before) const {
    const F with = V::fma(sum, scale, before);
    return shifts ? V::fma(V::set1(step.group_sums[row * step.groups + g]), shift, with) : with;
  }
};

}  // namespace easydel::kernels
