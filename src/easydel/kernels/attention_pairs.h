// Layout of attention's operands as pairs of bf16, for VDPBF16PS and tiles: pairs of dimensions for the scores, pairs
// of keys for the values. Included by loops_<set>.cpp only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "easydel/kernels/attention_loops.h"

namespace easydel::kernels {

// Pairs of bf16 multiplied by FMAs.
template <class V>
struct FmaPairs {
  using F = typename V::F;
  struct Left {
    F even, odd;
  };
  using Right = Left;
  static constexpr int max_rows = V::registers == 32 ? 12 : 4;
  static constexpr int64_t columns_in_place = 2 * V::width;

  static Left left(const bf16* pair) {
    uint32_t both;
    std::memcpy(&both, pair, sizeof both);
    return {V::set1(std::bit_cast<float>(both << 16)), V::set1(std::bit_cast<float>(both & 0xffff0000))};
  }
  static Right right(const bf16* pairs) { return {V::even(pairs), V::odd(pairs)}; }
  static F add(F sum, Right b, Left a) { return V::fma(a.even, b.even, V::fma(a.odd, b.odd, sum)); }

  // Two rows of 2 x width columns; only whole vectors if columns_in_place divides their number.
  static void right_of_rows(const bf16* even, const bf16* odd, int64_t, Right (&to)[2]) {
    for (int i = 0; i < 2; ++i) to[i] = {V::load(even + i * V::width), V::load(odd + i * V::width)};
  }
  // The largest magnitude of some numbers.
  struct Largest {
    uint16_t bits = 0;
    bool finite() const { return bits < 0x7f80; }
  };
  // Interleaves up to 32 columns of two rows into two tiles' rows of sixteen; missing columns and a null row are zeros.
  static void interleave(const bf16* even, const bf16* odd, int64_t columns, bf16* first, bf16* last,
                         Largest& largest) {
    for (int64_t c = 0; c < panel_columns; ++c) {
      bf16* const to = c < tile_columns ? first + 2 * c : last + 2 * (c - tile_columns);
      to[0] = even && c < columns ? even[c] : bf16{0};
      to[1] = odd && c < columns ? odd[c] : bf16{0};
      for (int i = 0; i < 2; ++i) largest.bits = std::max(largest.bits, uint16_t(to[i].bits & 0x7fff));
    }
  }
  static void store_weights(bf16* to, F x) { V::store(to, x); }
};

// D interleaves two rows per pair, as FmaPairs does.
template <class V, class D>
struct AttentionPairs {
  using Few = FewRows<V>;

  // `count` rows of `own` numbers as pairs of dimensions, [dim / 32][column / 16][16][16], dim padded with zeros;
  // columns after the last row are arbitrary. at(r) returns row r as an untyped pointer.
  template <int64_t columns, class At>
  static void transpose(const At& at, int64_t count, int64_t own, int64_t dim, bf16* to) {
    const bf16* row[columns];
    thread_local Scratch<bf16> of_thread;
    bf16* const padded = own == dim ? nullptr : of_thread.at_least(columns * dim);
    for (int64_t r = 0; r < columns; ++r) {
      row[r] = r < count ? static_cast<const bf16*>(at(r)) : row[count - 1];
      if (!padded || r >= count) continue;
      std::memcpy(padded + r * dim, row[r], size_t(own) * sizeof(bf16));
      std::memset(padded + r * dim + own, 0, size_t(dim - own) * sizeof(bf16));
      row[r] = padded + r * dim;
    }
    Few::transpose_rows(row, count, dim, 0, to, columns * k_block);
  }

  // Distances between panels of 32 columns, and between blocks of 16 pairs (two adjacent tiles each).
  struct Steps {
    int64_t panel, block;
  };
  // Interleaves rows of keys (two per pair; null: zeros) as pairs of keys; columns from v_dim up to v_step are zeros.
  // The data read next are `prefetch_distance` elements after each row (0: unknown). Returns whether all numbers are
  // finite.
  static bool interleave(const bf16* const* rows, int64_t pairs, int64_t v_dim, int64_t v_step, Steps steps, bf16* to,
                         int64_t prefetch_distance = 0) {
    typename D::Largest largest;
    for (int64_t i = 0; i < pairs; ++i) {
      const bf16 *const even = rows[2 * i], *const odd = rows[2 * i + 1];
      bf16* at = to + i / tile_columns * steps.block + i % tile_columns * k_block;
      for (int64_t c = 0; c < v_step; c += panel_columns, at += steps.panel) {
        if (prefetch_distance && even && odd)
          V::prefetch(even + prefetch_distance + c), V::prefetch(odd + prefetch_distance + c);
        D::interleave(even ? even + c : nullptr, odd ? odd + c : nullptr, v_dim - c, at, at + tile_elements, largest);
      }
    }
    return largest.finite();
  }
};

}  // namespace easydel::kernels
