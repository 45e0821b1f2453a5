// Products with adapters of low rank, for a vector type V. Included by loops_<set>.cpp only.
#pragma once

#include <algorithm>

#include "easydel/kernels/loops.h"
#include "easydel/kernels/norm_loops.h"
#include "easydel/kernels/product_layout.h"

namespace easydel::kernels {

template <class V>
struct LowRankLoops {
  using W = Wide<V>;
  using Math = WideMath<V>;
  using Rows = WideRows<V>;

  // Rows [first, first + rows) of y + factor * (low B^T).
  static void add_product(const LowRankStep& s, int64_t first, int64_t rows) {
    int64_t row = first;
    for (; row + 4 <= first + rows; row += 4) add_rows<4>(s, row);
    for (; row + 2 <= first + rows; row += 2) add_rows<2>(s, row);
    if (row < first + rows) add_rows<1>(s, row);
  }

  static void add_scaled(Input y, Input x, int64_t row, int64_t n, float factor, Output out) {
    const W by = W::set(factor);
    for (int64_t i = 0; i < n; i += lanes)
      Rows::store(out.dtype, out.at(row), i, n,
                  Math::fma(by, Rows::load(x.dtype, x.at(row), i, n), Rows::load(y.dtype, y.at(row), i, n)));
  }

  // Rows [first, first + rows) of low = factor * x A^T.
  static void narrow(const LowStep& s, int64_t first, int64_t rows) {
    const auto of_columns = [&]<int64_t columns>(int64_t column) {
      int64_t row = first;
      for (; row + 4 <= first + rows; row += 4) dots<4, columns>(s, row, column);
      for (; row < first + rows; ++row) dots<1, columns>(s, row, column);
    };
    if (s.rank == 2) return of_columns.template operator()<2>(0);
    for (int64_t column = 0; column < s.rank; column += 4) of_columns.template operator()<4>(column);
  }

  // Columns [first, first + 2 lanes) of dw = low^T x.
  static void gradient(const float* low, Input x, int64_t first, int64_t m, int64_t k, int64_t rank, float* dw) {
    if (rank == 2) return sums_of<2>(low, x, first, m, k, dw);
    if (rank == 4) return sums_of<4>(low, x, first, m, k, dw);
    sums_of<8>(low, x, first, m, k, dw);
  }

 private:
  // With enough registers a panel at a time: two vectors of columns for each row hide the latency of an FMA.
  template <int64_t rows>
  static void add_rows(const LowRankStep& s, int64_t row) {
    constexpr int64_t vectors = V::width == lanes ? panel_columns / lanes : 1;
    const W factor = W::set(s.factor);
    const float* const low = s.low + row * s.low_stride;
    int64_t at[rows];
    for (int64_t r = 0; r < rows; ++r) at[r] = s.rows ? s.rows[row + r] : row + r;
    for (int64_t i = 0; i < s.n; i += vectors * lanes) {
      const float* const b = s.panels + i / panel_columns * panel_columns * s.k + i % panel_columns;
      W sums[rows][vectors];
      for (auto& of_row : sums)
        for (W& sum : of_row) sum = W::zero();
      for (int64_t j = 0; j < s.k; ++j) {
        W columns[vectors];
        for (int64_t v = 0; v < vectors; ++v) columns[v] = W::load(b + j * panel_columns + v * lanes);
#pragma GCC unroll 4
        for (int64_t r = 0; r < rows; ++r) {
          const W by = W::set(low[r * s.low_stride + j]);
#pragma GCC unroll 2
          for (int64_t v = 0; v < vectors; ++v) sums[r][v] = Math::fma(by, columns[v], sums[r][v]);
        }
      }
#pragma GCC unroll 4
      for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int64_t v = 0; v < vectors; ++v) {
          const int64_t column = i + v * lanes;
          if (column >= s.n) break;
          const W y = s.y.data ? Rows::load(s.y.dtype, s.y.at(at[r]), column, s.n) : W::zero();
          Rows::store(s.out.dtype, s.out.at(at[r]), column, s.n, Math::fma(factor, sums[r][v], y));
        }
    }
  }

  template <int64_t rows, int64_t columns>
  static void dots(const LowStep& s, int64_t row, int64_t column) {
    const float* const a = static_cast<const float*>(s.a) + column * s.k;
    const void* x[rows];
    for (int64_t r = 0; r < rows; ++r) x[r] = s.x.at(s.rows ? s.rows[row + r] : row + r);
    W sums[rows][columns];
    for (auto& of_row : sums)
      for (W& sum : of_row) sum = W::zero();
    for (int64_t i = 0; i < s.k; i += lanes) {
      W right[columns];
      for (int64_t c = 0; c < columns; ++c) right[c] = W::load(a + c * s.k + i, s.k - i);
      for (int64_t r = 0; r < rows; ++r) {
        const W left = Rows::load(s.x.dtype, x[r], i, s.k);
        for (int64_t c = 0; c < columns; ++c) sums[r][c] = Math::fma(left, right[c], sums[r][c]);
      }
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) s.low[(row + r) * s.rank + column + c] = s.factor * Math::sum(sums[r][c]);
  }

  template <int64_t rank>
  static void sums_of(const float* low, Input x, int64_t first, int64_t m, int64_t k, float* dw) {
    const int64_t end = std::min(k, first + 2 * lanes);
    W sums[rank][2];
    for (auto& of_row : sums)
      for (W& sum : of_row) sum = W::zero();
    for (int64_t row = 0; row < m; ++row) {
      const W left = Rows::load(x.dtype, x.at(row), first, end),
              right = first + lanes < end ? Rows::load(x.dtype, x.at(row), first + lanes, end) : W::zero();
      for (int64_t j = 0; j < rank; ++j) {
        const W by = W::set(low[row * rank + j]);
        sums[j][0] = Math::fma(by, left, sums[j][0]);
        sums[j][1] = Math::fma(by, right, sums[j][1]);
      }
    }
    for (int64_t j = 0; j < rank; ++j) {
      Rows::store(DType::f32, dw + j * k, first, end, sums[j][0]);
      if (first + lanes < end) Rows::store(DType::f32, dw + j * k, first + lanes, end, sums[j][1]);
    }
  }
};

}  // namespace easydel::kernels
