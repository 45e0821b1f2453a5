// Products of many rows with quantized weights by tiles: bytes by TDPBSUD; four-bit codes are decoded to bf16 and
// multiplied in the order bf16_tile. Included by loops_amx.cpp only.
#pragma once

#include <algorithm>

#include "easydel/kernels/amx.h"
#include "easydel/kernels/code_pairs.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/product_loops.h"
#include "easydel/kernels/quantized_layout.h"

namespace easydel::kernels {

// What differs between the two: the instruction, the bytes per row of the left side in a block of k, the address of a
// chunk of the right side, and the scaling of a group's accumulators.
class ByteTileSide {
 public:
  using Op = ByteTiles;
  static constexpr int64_t piece = 512;  // k of a panel that L1 holds

  explicit ByteTileSide(const QuantizedStep& step)
      : step_(step), widened_(of_thread().at_least(piece * panel_columns)) {}
  int64_t line() const { return step_.block; }
  const void* left(int64_t row, int64_t k, int64_t of_rows) const {
    return step_.x_tiles + row * step_.padded_k + k * of_rows;
  }
  // `count` k of group g, starting at k; `at`: k before them, among the groups processed together.
  const void* right(int64_t panel, int64_t g, int64_t k, int64_t count, int64_t at) const {
    const uint8_t* const codes = step_.codes_at(panel, g) + k * step_.k_bytes;
    if (step_.codes == Codes::bytes) return codes;
    uint8_t* const to = widened_ + at * panel_columns;
    widen_nibbles(codes, step_.block, count, to);
    return to;
  }
  static constexpr bool streams = true;
  // Sixteen accumulators of a row in group g.
  __m512 total(const float* sums, int64_t row, int64_t g) const {
    const __m512i offset = _mm512_set1_epi32(step_.x_sums[row * step_.groups + g] * 128);
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_loadu_si512(sums), offset));
  }
  __m512 finished(__m512 sum, int64_t row) const { return _mm512_mul_ps(sum, _mm512_set1_ps(step_.x_scales[row])); }

 private:
  static Scratch<uint8_t>& of_thread() {
    thread_local Scratch<uint8_t> scratch;
    return scratch;
  }
  const QuantizedStep& step_;
  uint8_t* widened_;  // codes of four bits as bytes
};

class CodeTileSide {
 public:
  using Op = Bf16Tiles;
  static constexpr int64_t piece = 256;

  explicit CodeTileSide(const QuantizedStep& step)
      : step_(step), table_(CodePairs::table_of(step)), pairs_(of_thread().at_least(piece / 2 * panel_columns)) {}
  int64_t line() const { return k_block * int64_t(sizeof(bf16)); }
  const void* left(int64_t row, int64_t k, int64_t of_rows) const {
    return step_.a_tiles + row * step_.padded_k + k * of_rows;
  }
  const void* right(int64_t panel, int64_t g, int64_t k, int64_t count, int64_t at) const {
    uint32_t* const to = pairs_ + at / 2 * panel_columns;
    CodePairs::read_out(table_, step_.codes_at(panel, g), k, count, to);
    return to;
  }
  static constexpr bool streams = false;
  __m512 total(const float* sums, int64_t, int64_t) const { return _mm512_loadu_ps(sums); }
  __m512 finished(__m512 sum, int64_t) const { return sum; }

 private:
  static Scratch<uint32_t>& of_thread() {
    thread_local Scratch<uint32_t> scratch;
    return scratch;
  }
  const QuantizedStep& step_;
  __m512i table_;
  uint32_t* pairs_;
};

template <class Side>
struct AmxQuantizedLoops {
  // Rows [first, first + rows) of one panel; first is a multiple of tile_rows. Processes as many groups at a time as a
  // chunk holds, or a chunk of a long group, whose accumulators wait in memory.
  static void multiply(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows) {
    const Side side(step);
    TileRegisters registers(side.line());
    thread_local Scratch<float> of_thread;
    const int64_t of_all = round_up(rows, tile_rows) * panel_columns;
    float* const c = of_thread.at_least(2 * of_all);
    float* const sums = c + of_all;
    const int64_t groups_per_piece = std::max<int64_t>(1, Side::piece / step.group);
    for (int64_t g = 0; g < step.groups; g += groups_per_piece) {
      const int64_t end = std::min(g + groups_per_piece, step.groups), length = step.length_of(g);
      if (end - g > 1 || length <= Side::piece) {
        const void* right[Side::piece / k_block];
        for (int64_t i = g; i < end; ++i)
          right[i - g] = side.right(panel, i, 0, step.length_of(i), (i - g) * step.group);
        for (int64_t r = 0; r < rows; r += tile_rows) {
          const int64_t of_rows = std::min(tile_rows, rows - r);
          for (int64_t i = g; i < end; ++i) {
            LinesAhead ahead = soon(right[i - g], rows, step.length_of(i) * step.k_bytes);
            sum_tiles<typename Side::Op>(registers, side.left(first + r, i * step.group, of_rows), of_rows,
                                         right[i - g], step.length_of(i) / step.block, {sums, true}, ahead);
            add_scaled(side, step, panel, i, first + r, of_rows, sums, c + r * panel_columns);
          }
        }
        continue;
      }
      for (int64_t k = 0; k < length; k += Side::piece) {
        const int64_t count = std::min(Side::piece, length - k);
        const void* const right = side.right(panel, g, k, count, 0);
        LinesAhead ahead = soon(right, rows, count * step.k_bytes);
        for (int64_t r = 0; r < rows; r += tile_rows) {
          const int64_t of_rows = std::min(tile_rows, rows - r);
          float* const of_block = sums + r * panel_columns;
          sum_tiles<typename Side::Op>(registers, side.left(first + r, g * step.group + k, of_rows), of_rows, right,
                                       count / step.block, {of_block, k == 0}, ahead);
          if (k + count == length)
            add_scaled(side, step, panel, g, first + r, of_rows, of_block, c + r * panel_columns);
        }
      }
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < panel_columns; v += tile_columns) {
        float* const at = c + r * panel_columns + v;
        Avx512::store(at, side.finished(Avx512::load(at), first + r));
      }
    ProductLoops<Avx512>::write_rows(step.result, panel, first, rows, c);
  }

 private:
  static LinesAhead soon(const void* right, int64_t rows, int64_t bytes) {
    if (!Side::streams) return {};
    const int64_t row_blocks = divide_up(rows, tile_rows);
    return {static_cast<const char*>(right) + (row_blocks == 1 ? 2048 : bytes), lines_ahead(row_blocks)};
  }

  // c = sums x scale + c for group g; the first group initializes c.
  static void add_scaled(const Side& side, const QuantizedStep& step, int64_t panel, int64_t g, int64_t first,
                         int64_t rows, const float* sums, float* c) {
    const uint8_t* const group = step.group_at(panel, g);
    const GroupOfColumns<Avx512> columns[] = {{step, group, 0}, {step, group, tile_columns}};
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < 2; ++v) {
        const int64_t at = r * panel_columns + v * tile_columns;
        Avx512::store(c + at, columns[v].add(step, first + r, g, side.total(sums + at, first + r, g),
                                             g == 0 ? Avx512::zero() : Avx512::load(c + at)));
      }
  }
};

}  // namespace easydel::kernels
