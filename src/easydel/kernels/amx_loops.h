// bf16 products by tiles, in the order bf16_tile: with packed weights, and for gradients, whose right side is
// row-major. Included by loops_amx.cpp only.
#pragma once

#include <algorithm>
#include <cstring>

#include "easydel/kernels/amx.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/pair_packing.h"
#include "easydel/kernels/product_loops.h"

namespace easydel::kernels {

struct AmxLoops {
  using V = Avx512;
  static constexpr int64_t line = k_block * sizeof(bf16);

  // Packs `rows` (up to 32) rows of x starting at `first` as [k block][row][32]; missing k are 0.
  static void pack_rows(Input x, int64_t first, int64_t rows, int64_t k, bf16* to) {
    if (x.dtype == DType::bf16)
      return pack_rows([&](int64_t r) { return static_cast<const bf16*>(x.at(first + r)); }, rows, k, to);
    for (int64_t k0 = 0; k0 < k; k0 += k_block) {
      const __mmask32 own = own_of(k - k0);
      for (int64_t r = 0; r < rows; ++r, to += k_block) {
        const float* const wide = static_cast<const float*>(x.at(first + r, k0));
        V::store(to, _mm512_maskz_loadu_ps(__mmask16(own), wide));
        V::store(to + 16, _mm512_maskz_loadu_ps(__mmask16(own >> 16), wide + 16));
      }
    }
  }
  // The same for rows of bf16 given by pointers: at(r).
  template <class At>
  static void pack_rows(const At& at, int64_t rows, int64_t k, bf16* to) {
    for (int64_t k0 = 0; k0 < k; k0 += k_block) {
      const __mmask32 own = own_of(k - k0);
      for (int64_t r = 0; r < rows; ++r, to += k_block)
        _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(own, at(r) + k0));
    }
  }

  // The same for x's transpose, from bf16: several blocks of up to 32 columns, one after the other, so that whole cache
  // lines of a row are read.
  static void pack_columns(Input x, int64_t first, int64_t columns, int64_t k, bf16* to) {
    constexpr int64_t prefetch_rows = 8;
    const int64_t padded = round_up(k, k_block);
    for (int64_t k0 = 0; k0 < k; k0 += k_block)
      for (int64_t c = 0; c < columns; c += tile_rows) {
        const int64_t count = std::min(tile_rows, columns - c);
        const __mmask32 own = own_of(count);
        __m512 low[16], high[16];
        for (int64_t j = 0; j < 16; ++j) {
          const int64_t row = k0 + 2 * j;
          const auto at = [&](int64_t r) {
            return _mm512_maskz_loadu_epi16(r < k ? own : 0, x.at(std::min(r, k - 1), first + c));
          };
          if (row + prefetch_rows < k) V::prefetch(x.at(row + prefetch_rows, first + c));
          if (row + prefetch_rows + 1 < k) V::prefetch(x.at(row + prefetch_rows + 1, first + c));
          const __m512i even = at(row), odd = at(row + 1);
          low[j] = _mm512_castsi512_ps(PairPacking::low_pairs(even, odd));
          high[j] = _mm512_castsi512_ps(PairPacking::high_pairs(even, odd));
        }
        V::transpose(low), V::transpose(high);
        bf16* const block = to + c * padded + k0 * count;
        for (int64_t r = 0; r < count; ++r) V::store_pairs(block + r * k_block, r < 16 ? low[r] : high[r - 16]);
      }
  }

  // Rows [first, first + rows) of some panels of the result; first is a multiple of tile_rows.
  //
  // L1 holds 8 blocks of k of a panel and of a block of rows together with the accumulators; L2 holds all rows. If the
  // rows are too long for that, the accumulators of all panels stay in L2 and both sides stream.
  static void multiply(const ProductStep& step, int64_t panel, int64_t panels, int64_t first, int64_t rows) {
    const int64_t blocks = step.padded_k / k_block, row_blocks = divide_up(rows, tile_rows);
    if (blocks == 0) return write_zeros(step, panel, panels, first, rows);
    const bool gathers = step.right == RightSide::rows;
    const int64_t piece = row_blocks == 1 && !gathers ? blocks : even_piece(blocks);
    const int64_t stretch = gathers || rows * step.padded_k * 2 > l2_bytes_for_tiles() ? piece : blocks;
    const int64_t of_block = piece < blocks ? tile_rows * panel_columns : 0,
                  of_panel = stretch < blocks ? row_blocks * of_block : 0;
    thread_local Scratch<float> sums_of_thread;
    thread_local Scratch<uint32_t> gathered_of_thread;
    float* const sums =
        sums_of_thread.at_least(std::max({tile_rows * panel_columns, row_blocks * of_block, panels * of_panel}));
    uint32_t* const gathered = gathers ? gathered_of_thread.at_least(panels * stretch * tile_elements) : nullptr;
    TileRegisters registers(line);
    for (int64_t begin = 0; begin < blocks; begin += stretch) {
      const int64_t end = std::min(begin + stretch, blocks);
      if (gathers)
        PairPacking::pack_panels({step.rows.at(begin * k_block), step.rows.dtype, step.rows.stride},
                                 step.k - begin * k_block, step.n, panel, panels, (end - begin) * k_block / 2,
                                 gathered);
      const auto right = [&](int64_t p, int64_t k) {
        return gathers ? gathered + (p * (end - begin) + k - begin) * tile_elements
                       : static_cast<const uint32_t*>(step.panels) + ((panel + p) * blocks + k) * tile_elements;
      };
      for (int64_t p = 0; p < panels; ++p)
        for (int64_t k = begin; k < end; k += piece) {
          const int64_t count = std::min(piece, end - k);
          const uint32_t* const b = right(p, k);
          LinesAhead ahead;
          if (!gathers) {
            const bool same_panel = row_blocks == 1 || k + count < end || p + 1 == panels;
            const uint32_t* const next =
                same_panel ? b + (row_blocks == 1 ? 1 : count) * tile_elements : right(p + 1, begin);
            ahead = {reinterpret_cast<const char*>(next), lines_ahead(row_blocks)};
          }
          for (int64_t r = 0; r < rows; r += tile_rows) {
            const int64_t of_rows = std::min(tile_rows, rows - r);
            const bf16* const a = step.a_tiles + (first + r) * step.padded_k + k * of_rows * k_block;
            float* const c = sums + p * of_panel + r / tile_rows * of_block;
            sum_tiles<Bf16Tiles>(registers, a, of_rows, b, count, {c, k == 0}, ahead);
            // The accumulators are still in L1.
            if (k + count == blocks) ProductLoops<V>::write_rows(step, panel + p, first + r, of_rows, c);
          }
        }
    }
  }

 private:
  // A mask of the first `count` of 32.
  static __mmask32 own_of(int64_t count) { return count >= 32 ? ~__mmask32(0) : (__mmask32(1) << count) - 1; }

  // Cuts `blocks` into about as many equal chunks as there are chunks of 8.
  static int64_t even_piece(int64_t blocks) {
    return std::min(blocks, round_up(divide_up(blocks, divide_up(blocks, 8)), 2));
  }

  static void write_zeros(const ProductStep& step, int64_t panel, int64_t panels, int64_t first, int64_t rows) {
    constexpr float zeros[panel_columns] = {};
    for (int64_t p = panel; p < panel + panels; ++p)
      for (int64_t r = 0; r < rows; ++r) ProductLoops<V>::write_rows(step, p, first + r, 1, zeros);
  }
};

}  // namespace easydel::kernels
