// bf16 products by VDPBF16PS, for processors where it is faster than FMAs: products with a packed weight in the order
// bf16_pairs, and gradients, which read two consecutive rows of the right side at a time. Included by
// loops_avx512_bf16.cpp only.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "easydel/kernels/pair_packing.h"
#include "easydel/kernels/product_loops.h"
#include "easydel/kernels/simd_avx512.h"

namespace easydel::kernels {

struct PairLoops : PairPacking {
  using V = Avx512;
  static constexpr int64_t line = 32;                 // of bf16
  static constexpr int64_t tile = tile_elements / 2;  // in pairs

  // Rows of x, rounded, as [pair of k][rows]; or the same for its transpose. A missing k is 0.
  static void pack_rows(Input x, int64_t first, int64_t rows, int64_t k, int64_t pairs_in_all, uint32_t* to) {
    const bf16* row[block_rows];
    thread_local Scratch<bf16> rounded_of_thread;
    bf16* rounded = x.dtype == DType::f32 ? rounded_of_thread.at_least(rows * k) : nullptr;
    for (int64_t r = 0; r < rows; ++r) {
      row[r] = static_cast<const bf16*>(x.at(first + r));
      if (!rounded) continue;
      row[r] = rounded;
      for (int64_t i = 0; i < k; i += k_block)
        ProductLoops<V>::copy_bf16(x, first + r, i, std::min(k_block, k - i), rounded + i);
      rounded += k;
    }
    const __mmask16 own = __mmask16((1u << rows) - 1);
    int64_t i = 0;
    if (rows == 1) i = k / 2 * 2, std::memcpy(to, row[0], size_t(i) * sizeof(bf16));
    for (; i + 2 * lanes <= k; i += 2 * lanes) {
      __m512 pairs[lanes];
#pragma GCC unroll 16
      for (int64_t r = 0; r < lanes; ++r) pairs[r] = r < rows ? V::load_pairs(row[r] + i) : V::zero();
      V::transpose(pairs);
#pragma GCC unroll 16
      for (int64_t j = 0; j < lanes; ++j)
        _mm512_mask_storeu_epi32(to + (i / 2 + j) * rows, own, _mm512_castps_si512(pairs[j]));
    }
    for (; i < k; i += 2)
      for (int64_t r = 0; r < rows; ++r)
        to[i / 2 * rows + r] = uint32_t(row[r][i].bits) | (i + 1 < k ? uint32_t(row[r][i + 1].bits) << 16 : 0);
    std::fill_n(to + i / 2 * rows, (pairs_in_all - i / 2) * rows, 0u);
  }
  // Several blocks, one after the other: a row's cache lines are read once for all of them.
  static void pack_columns(Input x, int64_t first, int64_t columns, int64_t k, int64_t pairs, uint32_t* to) {
    constexpr int64_t prefetch_rows = 8;
    for (int64_t i = 0; i < k; i += 2) {
      for (int64_t r = i + prefetch_rows; r < std::min(i + prefetch_rows + 2, k); ++r)
        for (int64_t c = 0; c < columns; c += line) V::prefetch(x.at(r, first + c));
      int64_t c = 0;
      for (; i + 1 < k && c + line <= columns; c += 2 * block_rows) {  // fills two blocks from one load of each row
        const __m512i even = _mm512_loadu_si512(x.at(i, first + c)), odd = _mm512_loadu_si512(x.at(i + 1, first + c));
        uint32_t* const at = to + c * pairs + i / 2 * block_rows;
        constexpr __mmask16 own = (1u << block_rows) - 1;
        _mm512_mask_storeu_epi32(at, own, pairs_from(0, even, odd));
        _mm512_mask_storeu_epi32(at + block_rows * pairs, own, pairs_from(block_rows, even, odd));
      }
      for (; c < columns; c += block_rows) {
        const int64_t count = std::min(block_rows, columns - c);
        const __mmask16 own = __mmask16((1u << count) - 1);
        _mm512_mask_storeu_epi32(to + c * pairs + i / 2 * count, own, together(x, i, k, first + c, own));
      }
    }
    for (int64_t c = 0, done = divide_up(k, 2); c < columns; c += block_rows) {
      const int64_t count = std::min(block_rows, columns - c);
      std::fill_n(to + c * pairs + done * count, (pairs - done) * count, 0u);
    }
  }
  // Operation count of `rounds` rounds of as many chains as hide the instruction's latency.
  static double peak(int64_t rounds, float* keep) {
    constexpr int chains = 24;
    __m512 sums[chains];
    for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_ps(float(i));
    const __m512bh a = __m512bh(_mm512_castps_si512(_mm512_set1_ps(keep[1]))),
                   b = __m512bh(_mm512_castps_si512(_mm512_set1_ps(keep[2])));
    for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 24
      for (int i = 0; i < chains; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], a, b);
    for (int i = 1; i < chains; ++i) sums[0] = V::add(sums[0], sums[i]);
    keep[0] = V::sum(sums[0]);
    return 2.0 * chains * 2 * lanes * double(rounds);
  }

  // L2 holds pairs_per_stretch of the left side (all of it for few rows) while all panels are multiplied; L1 holds 96
  // to 144 pairs of a panel while all rows are. Few rows read each panel sequentially, and a result that needs no more
  // pairs is written directly. Of row-major rows some are packed at a time.
  static void multiply(const ProductStep& step, int64_t panel, int64_t panels, int64_t first, int64_t rows) {
    const int64_t all = step.padded_k;
    if (step.right != RightSide::rows) {
      const Right right{static_cast<const uint32_t*>(step.panels) + panel * all * panel_columns, all};
      if (rows > 0 && rows <= few_rows) return multiply_few(step, right, panel, panels, first, rows);
      if (all <= piece && rows > step.rows_per_block) return multiply_short(step, right, panel, panels, first, rows);
      const bool in_one_stretch =
          rows <= step.rows_per_block || rows * all * int64_t(sizeof(uint32_t)) <= l2_bytes_for_pairs();
      return multiply_stretches(step, panel, panels, first, rows, in_one_stretch ? all : pairs_per_stretch,
                                [&](int64_t) { return right; });
    }
    thread_local Scratch<uint32_t> of_thread;
    const int64_t stretch = std::min(all, piece);
    uint32_t* const packed = of_thread.at_least(panels * stretch * panel_columns);
    const auto pack = [&](int64_t begin) {
      const int64_t pairs = std::min(stretch, all - begin);
      const Input from(step.rows.at(2 * begin), step.rows.dtype, step.rows.stride);
      pack_panels(from, step.k - 2 * begin, step.n, panel, panels, pairs, packed);
      return Right{packed, pairs, begin};
    };
    if (all <= piece) return multiply_short(step, pack(0), panel, panels, first, rows);
    multiply_stretches(step, panel, panels, first, rows, stretch, pack);
  }

  // Prefetches per sixteen pairs, evenly: the left side's lines that the next rows read, and a part of the data that is
  // read soon.
  class Ahead {
   public:
    // Contiguous, or `apart` bytes apart; the data `step` bytes further are prefetched next.
    void next_rows(const uint32_t* at) { left_ = reinterpret_cast<const char*>(at), apart_ = 64, step_ = 0; }
    void next_rows(const char* at, int64_t apart, int64_t step) { left_ = at, apart_ = apart, step_ = step; }
    void soon(const PrefetchRange& soon, int64_t steps) {
      soon_ = soon, line_ = 0;
      each_ = divide_up(soon.rows * soon.lines, std::max<int64_t>(steps, 1));
    }
    void operator()(int64_t rows) {
      for (int64_t i = 0; i < rows; ++i) _mm_prefetch(left_ + apart_ * i, _MM_HINT_T0);
      left_ += step_ > 0 ? step_ : apart_ * rows;
      for (int64_t i = 0; i < each_ && soon_.rows > 0; ++i) {
        _mm_prefetch(soon_.data + 64 * line_, _MM_HINT_T1);
        if (++line_ == soon_.lines) line_ = 0, soon_.data += soon_.stride, --soon_.rows;
      }
    }

   private:
    const char* left_ = nullptr;
    int64_t apart_ = 64, step_ = 0;
    PrefetchRange soon_;
    int64_t each_ = 0, line_ = 0;
  };

  // The accumulators of a block, [rows][32]. `first`: they start from zero. The last pairs turn them into the result,
  // in place if it is no larger.
  struct Sums {
    float* at;
    bool first;
    Output result{};  // from the block's first row and column; without data they stay accumulators
    bool non_temporal = false;
  };

  // c [count][32] += a block of the left side x `pairs` pairs of a panel.
  template <int rows = int(block_rows)>
  static void some_rows(int64_t count, const uint32_t* a, const uint32_t* b, int64_t pairs, const Sums& c,
                        Ahead& ahead) {
    if constexpr (rows > 0) {
      if (count < rows) return some_rows<rows - 1>(count, a, b, pairs, c, ahead);
      __m512 sum[rows][2];
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) sum[r][v] = c.first ? V::zero() : V::load(c.at + r * panel_columns + v * lanes);
      for (int64_t block = 0; block < pairs; block += lanes, b += tile) {
        ahead(rows);
        for (int64_t i = block; i < std::min(block + lanes, pairs); ++i, a += rows, b += lanes) {
          const __m512bh low = __m512bh(_mm512_load_si512(b)), high = __m512bh(_mm512_load_si512(b + tile));
#pragma GCC unroll 12
          for (int r = 0; r < rows; ++r) {
            const __m512bh x = __m512bh(_mm512_set1_epi32(int(a[r])));
            sum[r][0] = _mm512_dpbf16_ps(sum[r][0], low, x);
            sum[r][1] = _mm512_dpbf16_ps(sum[r][1], high, x);
          }
        }
      }
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) store_row(c, r, sum[r]);
    }
  }

 private:
  // Number of pairs that are not zero on both sides, plus one zero pair: it turns a sum of -0 into +0, as in every
  // order.
  static int64_t terms_of(const ProductStep& step) { return std::min(step.padded_k, divide_up(step.k, 2) + 1); }
  // The instruction's sums are never denormals, which VCVTNEPS2BF16 would flush to zero.
  static void store_sum(bf16* to, __m512 sum) {
    const __mmask16 nan = _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_mask_mov_epi16(__m256i(_mm512_cvtneps_pbh(sum)), nan, _mm256_set1_epi16(0x7fc0)));
  }

  // A row of the accumulators becomes a row of `c`.
  static void store_row(const Sums& c, int r, const __m512 (&sum)[2]) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      if (c.result.dtype == DType::bf16) {
        store_sum(static_cast<bf16*>(c.result.data) + r * c.result.stride + v * lanes, sum[v]);
        continue;
      }
      float* const to = c.result.data ? static_cast<float*>(c.result.data) + r * c.result.stride + v * lanes
                                      : c.at + r * panel_columns + v * lanes;
      c.non_temporal ? V::stream(to, sum[v]) : V::store(to, sum[v]);
    }
  }

  // Whether the accumulators of a panel are stored in the result itself.
  static bool writes_through(const ProductStep& step, int64_t panel) {
    return !step.bias && !step.add && (panel + 1) * panel_columns <= step.n;
  }
  static Output result_at(const ProductStep& step, int64_t panel, int64_t row) {
    return {step.y.at(row, panel * panel_columns), step.y.dtype, step.y.stride};
  }

  static constexpr int64_t piece = 128;  // pairs of a panel that L1 holds

  // So many rows are multiplied by several panels at a time, as many as have their accumulators in registers.
  static constexpr int64_t few_rows = 6;
  static constexpr int panels_at_once(int rows) { return std::min(4, 12 / rows); }

  // Whole panels, or `pairs` pairs of each panel starting at `first`.
  struct Right {
    const uint32_t* data;
    int64_t pairs, first = 0;
    const uint32_t* at(int64_t p, int64_t pair) const { return data + (p * pairs + pair - first) * panel_columns; }
  };

  static int64_t even_piece(int64_t pairs) {
    constexpr int64_t max_pairs = piece + lanes;
    return round_up(divide_up(pairs, std::max<int64_t>(1, divide_up(pairs, max_pairs))), lanes);
  }

  // right(pair): the panels starting at that pair.
  template <class Make>
  static void multiply_stretches(const ProductStep& step, int64_t panel, int64_t panels, int64_t first, int64_t rows,
                                 int64_t stretch, const Make& right_from) {
    const bool is_one_block = rows <= step.rows_per_block, gathers = step.right == RightSide::rows;
    const int64_t all = step.padded_k, terms = terms_of(step),
                  pairs_per_pass = is_one_block ? stretch : even_piece(stretch);
    const int64_t of_panel = round_up(rows, step.rows_per_block) * panel_columns, kept = all > stretch ? of_panel : 0;
    const int64_t blocks = divide_up(rows, step.rows_per_block);
    thread_local Scratch<float> sums_of_thread;
    float* const sums = sums_of_thread.at_least(kept > 0 ? panels * kept : of_panel);
    Ahead ahead;
    const bool has_next = !gathers && step.next.rows > 0;
    if (has_next) ahead.soon(step.next, panels * blocks * (all / lanes));
    int64_t begin = 0;
    do {
      const int64_t end = std::min(begin + stretch, all);
      const Right right = right_from(begin);
      if (gathers) ahead.soon(next_rows_of(step, panel, panels, end, stretch), panels * blocks * (stretch / lanes));
      for (int64_t p = 0; p < panels; ++p) {
        float* const c = sums + p * kept;
        const bool through = writes_through(step, panel + p);
        for (int64_t pair = begin; pair < end; pair += pairs_per_pass) {
          const int64_t pairs = std::min(pairs_per_pass, end - pair);
          const uint32_t* const b = right.at(p, pair);
          const auto left = [&](int64_t r) {
            return step.a_pairs + (first + r) * all + pair * std::min(step.rows_per_block, rows - r);
          };
          if (!gathers && !has_next) {  // this many pairs, or 8 KB
            const int64_t off = is_one_block ? 2048 : pairs * panel_columns;
            ahead.soon({reinterpret_cast<const char*>(b + off), 1, 2 * pairs, 0}, blocks * (pairs / lanes));
          }
          for (int64_t r = 0; r < rows; r += step.rows_per_block) {
            const int64_t count = std::min(step.rows_per_block, rows - r);
            ahead.next_rows(left(r + step.rows_per_block < rows ? r + step.rows_per_block : r));
            Sums to{c + r * panel_columns, pair == 0};
            if (through && pair + pairs == all)
              to.result = result_at(step, panel + p, first + r), to.non_temporal = step.non_temporal;
            some_rows(count, left(r), b, std::min(pairs, terms - pair), to, ahead);
          }
        }
        if (all == 0) std::memset(c, 0, size_t(of_panel) * sizeof(float));
        if (end == all && (!through || all == 0)) ProductLoops<V>::write_rows(step, panel + p, first, rows, c);
      }
      begin = end;
    } while (begin < all);
  }

  // Few rows read each panel once, from memory. Tiles are read in the order in which they are stored, which the
  // hardware prefetches best (reading both tiles of a block in turns had half of that rate). A chain of additions waits
  // for its own results, so several panels are multiplied at a time; an element's order of additions does not depend on
  // that.
  static void multiply_few(const ProductStep& step, const Right& right, int64_t panel, int64_t panels, int64_t first,
                           int64_t rows) {
    if (rows == 1) return multiply_few<1>(step, right, panel, panels, first);
    if (rows == 2) return multiply_few<2>(step, right, panel, panels, first);
    if (rows == 3) return multiply_few<3>(step, right, panel, panels, first);
    if (rows == 4) return multiply_few<4>(step, right, panel, panels, first);
    if (rows == 5) return multiply_few<5>(step, right, panel, panels, first);
    multiply_few<few_rows>(step, right, panel, panels, first);
  }
  template <int rows>
  static void multiply_few(const ProductStep& step, const Right& right, int64_t panel, int64_t panels, int64_t first) {
    constexpr int max_panels = panels_at_once(rows);
    const uint32_t* const a = step.a_pairs + first * step.padded_k;
    const int64_t groups = divide_up(panels, max_panels);  // of all but equal size
    Ahead ahead;
    ahead.soon(step.next, groups * divide_up(terms_of(step), lanes));
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t begin = panels * group / groups, end = panels * (group + 1) / groups;
      some_panels<rows, max_panels>(step, end - begin, a, right.at(begin, 0), panel + begin, first, ahead);
    }
  }
  // The result's panels [panel, panel + count) of `rows` rows.
  template <int rows, int panels>
  static void some_panels(const ProductStep& step, int64_t count, const uint32_t* a, const uint32_t* b, int64_t panel,
                          int64_t first, Ahead& ahead) {
    if constexpr (panels > 0) {
      if (count < panels) return some_panels<rows, panels - 1>(step, count, a, b, panel, first, ahead);
      const int64_t terms = terms_of(step), apart = step.padded_k * panel_columns;
      __m512 sum[panels][rows][2];
#pragma GCC unroll 4
      for (int p = 0; p < panels; ++p)
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r) sum[p][r][0] = sum[p][r][1] = V::zero();
      for (int64_t block = 0; block < terms; block += lanes, a += lanes * rows) {
        ahead(0);
        const int64_t pairs = std::min(lanes, terms - block);
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v, b += tile)
          for (int64_t i = 0; i < pairs; ++i) {
            __m512bh x[rows];
#pragma GCC unroll 6
            for (int r = 0; r < rows; ++r) x[r] = __m512bh(_mm512_set1_epi32(int(a[i * rows + r])));
#pragma GCC unroll 4
            for (int p = 0; p < panels; ++p) {
              const __m512bh right = __m512bh(_mm512_load_si512(b + p * apart + i * lanes));
#pragma GCC unroll 6
              for (int r = 0; r < rows; ++r) sum[p][r][v] = _mm512_dpbf16_ps(sum[p][r][v], right, x[r]);
            }
          }
      }
      alignas(64) float kept[rows * panel_columns];
#pragma GCC unroll 4
      for (int p = 0; p < panels; ++p) {
        const bool through = writes_through(step, panel + p);
        Sums c{kept, true};
        if (through) c.result = result_at(step, panel + p, first), c.non_temporal = step.non_temporal;
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r) store_row(c, r, sum[p][r]);
        if (!through) ProductLoops<V>::write_rows(step, panel + p, first, rows, kept);
      }
    }
  }

  // All of k at once, for as many panels as L1 holds.
  static void multiply_short(const ProductStep& step, const Right& right, int64_t panel, int64_t panels, int64_t first,
                             int64_t rows) {
    const int64_t all = step.padded_k, terms = terms_of(step);
    const int64_t panels_per_pass = std::max<int64_t>(1, 2 * piece / std::max<int64_t>(all, 1));
    alignas(64) float c[block_rows * panel_columns];
    Ahead ahead;
    for (int64_t begin = 0; begin < panels; begin += panels_per_pass)
      for (int64_t r = 0; r < rows; r += step.rows_per_block) {
        const int64_t count = std::min(step.rows_per_block, rows - r);
        const uint32_t* const a = step.a_pairs + (first + r) * all;
        for (int64_t p = begin; p < std::min(panels, begin + panels_per_pass); ++p) {
          ahead.next_rows(a);
          if (writes_through(step, panel + p)) {
            const Output result = result_at(step, panel + p, first + r);
            some_rows(count, a, right.at(p, 0), terms, {c, true, result, step.non_temporal}, ahead);
            continue;
          }
          some_rows(count, a, right.at(p, 0), terms, {c, true}, ahead);
          ProductLoops<V>::write_rows(step, panel + p, first + r, count, c);
        }
      }
  }

  // The row-major rows that are packed after those before `pair`.
  static PrefetchRange next_rows_of(const ProductStep& step, int64_t panel, int64_t panels, int64_t pair,
                                    int64_t stretch) {
    if (pair >= step.padded_k) pair = 0, panel += panels;
    const int64_t columns = std::min(panels * panel_columns, step.n - panel * panel_columns);
    if (columns <= 0) return step.next;
    return lines_of(step.rows, 2 * pair, std::clamp<int64_t>(step.k - 2 * pair, 0, 2 * stretch), columns,
                    panel * panel_columns);
  }
};

}  // namespace easydel::kernels
