// The values of four-bit codes of a table, row by row, for a vector type V. Included by loops_<set>.cpp only.
#pragma once

#include <algorithm>
#include <cstring>

#include "easydel/kernels/group_scales.h"
#include "easydel/kernels/quantized_layout.h"

namespace easydel::kernels {

template <class V>
struct CodeValueLoops {
  using F = typename V::F;
  static constexpr int width = V::width;

  // Rows [first, first + rows) of W, all in one panel, to `to` [rows, k].
  static void write(const QuantizedStep& step, int64_t first, int64_t rows, Output to) {
    if (to.dtype == DType::f32)
      write_rows<float>(step, first, rows, to);
    else
      write_rows<bf16>(step, first, rows, to);
  }

 private:
  static constexpr int squares = int(k_block) / width;

  // Of the columns of a vector.
  struct Numbers {
    F scale, shift = V::zero();
    CodeShift kind;

    Numbers(const QuantizedStep& step, const uint8_t* group, int64_t column)
        : scale(scales_of<V>(step, group, column)), kind(step.shift) {
      if (kind != CodeShift::none) shift = shifts_of<V>(step, group, column);
    }
    [[gnu::always_inline]] F value(F x) const {
      if (kind == CodeShift::zeros) x = V::sub(x, shift);
      x = V::mul(x, scale);
      return kind == CodeShift::offsets ? V::add(x, shift) : x;
    }
  };

  // Squares of as many columns as a vector has: a look-up gives one k of each, and is turned to rows. A block of k at a
  // time, so that lines of the result are written whole.
  template <class T>
  static void write_rows(const QuantizedStep& step, int64_t first, int64_t rows, Output to) {
    const int64_t panel = first / panel_columns, begin = first % panel_columns, end = begin + rows;
    const auto table = V::table(step.table);
    for (int64_t g = 0; g < step.groups; ++g) {
      const uint8_t* const group = step.group_at(panel, g);
      for (int64_t column = begin / width * width; column < end; column += width) {
        const Numbers numbers(step, group, column);
        const uint8_t* block =
            step.codes_at(panel, g) + column / tile_columns * code_tile_bytes + column % tile_columns * 4;
        const int64_t top = std::max(begin, column), bottom = std::min(end, column + width);
        for (int64_t i = 0; i < step.length_of(g); i += k_block, block += code_block_bytes) {
          const int64_t k = g * step.group + i, count = std::min(k_block, step.k - k);
          F values[squares][width];
          for (int square = 0; square < squares; ++square)
            decode(table, block, square * width, numbers, values[square]);
          for (int64_t c = top; c < bottom; ++c) {
            const auto put = [&](T* row) {
              for (int square = 0; square < squares; ++square)
                V::store(row + square * width, values[square][c - column]);
            };
            T* const row = static_cast<T*>(to.at(c - begin, k));
            if (count == k_block) {
              put(row);
            } else {
              T some[k_block];
              put(some);
              std::memcpy(row, some, size_t(count) * sizeof(T));
            }
          }
        }
      }
    }
  }

  // A square from k on: vector i has the k of column i.
  [[gnu::always_inline]] static void decode(const typename V::Table& table, const uint8_t* block, int64_t k,
                                            const Numbers& numbers, F* values) {
    constexpr int line = width < 8 ? width : 8;  // k of a row of the block
#pragma GCC unroll 2
    for (int j = 0; j < width; j += line) {
      const auto bits = V::nibbles(block + (k + j) / 8 * 64);
#pragma GCC unroll 8
      for (int i = 0; i < line; ++i)
        values[j + i] = numbers.value(V::look_up(table, bits, int(nibble_of(width < 8 ? k + i : i))));
    }
    if constexpr (width > 1) V::transpose(values);
  }
};

}  // namespace easydel::kernels
