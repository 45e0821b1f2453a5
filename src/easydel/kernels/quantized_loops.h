// The inner loops of products with quantized weights, for a vector type V and its byte dot products V::Dots. Included
// by loops_<set>.cpp only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "easydel/kernels/group_scales.h"
#include "easydel/kernels/product_loops.h"
#include "easydel/kernels/quantized_layout.h"
#include "easydel/kernels/wide.h"

namespace easydel::kernels {

template <class V, class D>
struct ByteLoops {
  using F = typename V::F;
  using I = typename D::I;
  static constexpr int width = V::width, vectors = 2;
  static constexpr int max_rows = D::registers == 32 ? 12 : 4;

  // Packs one row of the left side.
  static void pack_row(const QuantizedStep& step, Input x, int64_t row, int8_t* codes, int32_t* sums, float* scale) {
    if (x.dtype == DType::f32)
      pack(step, static_cast<const float*>(x.at(row)), codes, sums, scale);
    else
      pack(step, static_cast<const bf16*>(x.at(row)), codes, sums, scale);
  }

  // Rows [first, first + rows) of one panel.
  static void multiply(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows) {
    if (step.result.y.dtype == DType::f32)
      multiply_to<float>(step, panel, first, rows);
    else
      multiply_to<bf16>(step, panel, first, rows);
  }

 private:
  static constexpr int64_t row_ints = panel_columns / width * D::ints;

  template <class T>
  static void pack(const QuantizedStep& step, const T* x, int8_t* codes, int32_t* sums, float* scale) {
    using W = Wide<V>;
    using M = WideMath<V>;
    // Independent chains, whose order changes no bit: maxima, NaN or not, and exact sums.
    constexpr int chains = 4;
    const int64_t k = step.k, groups = step.groups, group = step.group;
    W most[chains], spoiled[chains];  // x - x is a NaN where x is not finite
    for (int c = 0; c < chains; ++c) most[c] = spoiled[c] = W::zero();
    const auto look = [&](int c, W x_i) {
      most[c] = M::max(M::abs(x_i), most[c]), spoiled[c] = spoiled[c] + (x_i - x_i);
    };
    int64_t i = 0;
    for (; i + chains * lanes <= k; i += chains * lanes)
#pragma GCC unroll 4
      for (int c = 0; c < chains; ++c) look(c, W::load(x + i + c * lanes));
    for (; i < k; i += lanes) look(0, W::load(x + i, k - i));
    for (int c = 1; c < chains; ++c) most[0] = M::max(most[c], most[0]), spoiled[0] = spoiled[0] + spoiled[c];
    const float size = M::top(most[0]);
    const bool finite = M::sum(spoiled[0]) == 0, zero = finite && size < 0x1p-100f;
    *scale = finite ? (zero ? 0 : size / 127) : std::bit_cast<float>(0x7fc00000u);
    if (!finite || zero) {
      std::memset(codes, 0, size_t(step.padded_k));
      std::memset(sums, 0, size_t(groups) * sizeof(int32_t));
      return;
    }
    // The product with the largest x is 127 or the next number, which rounds to 127.
    const W factor = W::set(127 / size);
    i = 0;
    for (int64_t g = 0; g < groups; ++g) {
      W sum[chains];  // of at most 131072 codes: exact
      for (int c = 0; c < chains; ++c) sum[c] = W::zero();
      const auto round = [&](int c, int64_t at, W x_i) {
        const W code = M::round(x_i * factor);
        code.store_exact(codes + at);
        sum[c] = sum[c] + code;
      };
      const int64_t end = std::min(k, (g + 1) * group);
      for (; i + chains * lanes <= end; i += chains * lanes)
#pragma GCC unroll 4
        for (int c = 0; c < chains; ++c) round(c, i + c * lanes, W::load(x + i + c * lanes));
      for (; i < end; i += lanes) round(0, i, W::load(x + i, k - i));
      for (int c = 1; c < chains; ++c) sum[0] = sum[0] + sum[c];
      sums[g] = int32_t(M::sum(sum[0]));
    }
    const int64_t written = round_up(k, lanes);
    std::memset(codes + written, 0, size_t(step.padded_k - written));
  }

  template <class T>
  static void multiply_to(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows) {
    thread_local Scratch<float> floats_of_thread;
    thread_local Scratch<int32_t> sums_of_thread;
    constexpr int64_t piece = 512;
    float* const c = floats_of_thread.at_least(rows * panel_columns);
    int32_t* const sums = sums_of_thread.at_least(rows * row_ints);
    if (step.padded_k == 0) {
      std::memset(c, 0, size_t(rows * panel_columns) * sizeof(float));
      return ProductLoops<V>::write_rows(step.result, panel, first, rows, c);
    }
    const bool nibbles = step.codes == Codes::nibbles;
    alignas(64) uint8_t widened[piece * panel_columns];
    for (int64_t g = 0; g < step.groups; ++g) {
      const int64_t length = step.length_of(g), k_step = rows <= block_rows && !nibbles ? length : piece;
      for (int64_t k0 = 0; k0 < length; k0 += k_step) {
        const int64_t k = std::min(k_step, length - k0);
        const uint8_t* codes = step.codes_at(panel, g) + k0 * step.k_bytes;
        if (nibbles) widen_nibbles(codes, step.block, k, widened), codes = widened;
        for (int64_t r = 0; r < rows; r += max_rows) {
          const int64_t count = std::min<int64_t>(max_rows, rows - r);
          some_rows(count, step.x + (first + r) * step.padded_k + g * step.group + k0, step.padded_k, codes, step.block,
                    k, sums + r * row_ints, k0 == 0);
          if (k0 + k_step >= length)
            add_group<T>(step, panel, g, first + r, count, sums + r * row_ints, c + r * panel_columns);
        }
      }
    }
  }

  // Adds the sums of one group to those of the groups before, in fp32, and writes the result after the last.
  template <class T>
  static void add_group(const QuantizedStep& step, int64_t panel, int64_t g, int64_t first, int64_t rows,
                        const int32_t* sums, float* c) {
    const ProductStep& result = step.result;
    const bool last = g + 1 == step.groups;
    const bool in_place = last && !result.bias && !result.add && (panel + 1) * panel_columns <= result.n;
    const uint8_t* const group = step.group_at(panel, g);
    for (int64_t r = 0; r < rows; ++r) {
      const int32_t offset = step.x_sums[(first + r) * step.groups + g] * 128;
      T* const to = static_cast<T*>(result.y.at(first + r, panel * panel_columns));
#pragma GCC unroll 4
      for (int64_t v = 0; v < panel_columns / width; ++v) {
        float* const before = c + r * panel_columns + v * width;
        F y = V::fma(D::total(D::load(sums + r * row_ints + v * D::ints), offset), scales_of<V>(step, group, v * width),
                     g == 0 ? V::zero() : V::load(before));
        if (last) y = V::mul(y, V::set1(step.x_scales[first + r]));
        if (in_place)
          V::store(to + v * width, y);
        else
          V::store(before, y);
      }
    }
    if (last && !in_place) ProductLoops<V>::write_rows(result, panel, first, rows, c);
  }

  template <int rows = max_rows>
  static void some_rows(int64_t count, const int8_t* x, int64_t stride, const uint8_t* w, int64_t block, int64_t k,
                        int32_t* sums, bool first) {
    if constexpr (rows > 0) {
      if (count < rows) return some_rows<rows - 1>(count, x, stride, w, block, k, sums, first);
      for (int64_t column = 0; column < panel_columns; column += vectors * width)
        chain<rows>(x, stride, w, column, block, k, sums + column / width * D::ints, first);
    }
  }

  template <int rows>
  static void chain(const int8_t* x, int64_t stride, const uint8_t* w, int64_t column, int64_t block, int64_t k,
                    int32_t* sums, bool first) {
    I sum[rows][vectors];
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[r][v] = first ? D::zero() : D::load(sums + r * row_ints + v * D::ints);
    const int64_t tile = tile_columns * block;
    int64_t at[vectors];
    for (int v = 0; v < vectors; ++v) {
      const int64_t c = column + v * width;
      at[v] = c / tile_columns * tile + c % tile_columns * 4;
    }
    // A block has 8 or 16 steps. Few rows wait for memory: then far prefetches and near reads have to alternate.
    constexpr int unrolled = rows < 12 ? 2 : 8;
    for (int64_t k0 = 0; k0 < k; k0 += block, w += 2 * tile)
      for (int64_t j = 0; j < block; j += 4 * unrolled, x += 4 * unrolled) {
#pragma GCC unroll 8
        for (int u = 0; u < unrolled; ++u) {
          const uint8_t* const row = w + (j + 4 * u) * tile_columns;
          const uint8_t* const soon = w + prefetch_distance_bytes + 2 * (j + 4 * u) * tile_columns;
          V::prefetch(soon), V::prefetch(soon + 64);
          // Row by row: then no more of x than four bytes of one row is in a register.
          const auto low = D::bytes(row + at[0]), high = D::bytes(row + at[1]);
#pragma GCC unroll 12
          for (int r = 0; r < rows; ++r) {
            sum[r][0] = D::add(sum[r][0], low, x + r * stride + 4 * u);
            sum[r][1] = D::add(sum[r][1], high, x + r * stride + 4 * u);
          }
        }
      }
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) D::store(sums + r * row_ints + v * D::ints, sum[r][v]);
  }
};

template <class V>
struct CodeLoops {
  using F = typename V::F;
  using Tile = Tiles<V>;
  static constexpr int width = V::width, vectors = 2;

  // The sums of a row of x, rounded to bf16 if asked, in each group.
  static void sum_groups(const QuantizedStep& step, Input x, int64_t row, bool rounded, float* sums) {
    if (x.dtype == DType::f32)
      sum_groups(step, static_cast<const float*>(x.at(row)), rounded, sums);
    else
      sum_groups(step, static_cast<const bf16*>(x.at(row)), rounded, sums);
  }

  // Rows [first, first + rows) of one panel; first is a multiple of block_rows.
  static void multiply(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows) {
    thread_local Scratch<float> floats_of_thread;
    float* const c = floats_of_thread.at_least(2 * rows * panel_columns);
    float* const sums = c + rows * panel_columns;
    std::memset(c, 0, size_t(rows * panel_columns) * sizeof(float));
    for (int64_t g = 0; g < step.groups; ++g) {
      const uint8_t *const group = step.group_at(panel, g), *const codes = step.codes_at(panel, g);
      if (rows <= max_undecoded_rows)
        read_for_each(step, g, codes, first, rows, sums);
      else
        read_out(step, g, codes, first, rows, sums);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t v = 0; v < panel_columns; v += width) {
          const GroupOfColumns<V> columns(step, group, v);
          float *const to = c + r * panel_columns + v, *const from = sums + r * panel_columns + v;
          V::store(to, columns.add(step, first + r, g, V::load(from), V::load(to)));
        }
    }
    ProductLoops<V>::write_rows(step.result, panel, first, rows, c);
  }

 private:
  template <class T>
  static void sum_groups(const QuantizedStep& step, const T* x, bool rounded, float* sums) {
    using W = Wide<V>;
    for (int64_t g = 0; g < step.groups; ++g) {
      const int64_t end = std::min(step.k, (g + 1) * step.group);
      W sum = W::zero();
      for (int64_t i = g * step.group; i < end; i += lanes) {
        const W some = W::load(x + i, end - i);
        sum = sum + (rounded ? W::make([&](int part) { return V::rounded(some.part[part]); }) : some);
      }
      sums[g] = WideMath<V>::sum(sum);
    }
  }

  static constexpr int64_t max_undecoded_rows = 48;  // rows; with more of them decoding to a panel once costs less

  // Few rows: decodes straight into the accumulator's products, for up to four rows at once.
  static void read_for_each(const QuantizedStep& step, int64_t g, const uint8_t* codes, int64_t first, int64_t rows,
                            float* sums) {
    for (int64_t r = 0; r < rows; r += block_rows) {
      const int64_t stride = std::min(block_rows, rows - r);
      const float* const a = step.a + (first + r) * step.padded_k + g * step.group * stride;
      for (int64_t i = 0; i < stride; i += 4)
        read_once(step, g, codes, a + i, stride, std::min<int64_t>(4, stride - i), sums + (r + i) * panel_columns);
    }
  }

  static void read_once(const QuantizedStep& step, int64_t g, const uint8_t* codes, const float* a, int64_t stride,
                        int64_t rows, float* sums) {
    const auto of_rows = [&]<int count>(std::integral_constant<int, count>) {
      if (stride == count) return sum_order<count, count>(step, a, stride, g, codes, sums);
      sum_order<count, 0>(step, a, stride, g, codes, sums);
    };
    if (rows == 1) of_rows(std::integral_constant<int, 1>());
    if (rows == 2) of_rows(std::integral_constant<int, 2>());
    if (rows == 3) of_rows(std::integral_constant<int, 3>());
    if (rows == 4) of_rows(std::integral_constant<int, 4>());
  }

  // `apart`: the distance between the k of the left side if it is a constant, else 0.
  template <int rows, int apart>
  static void sum_order(const QuantizedStep& step, const float* a, int64_t stride, int64_t g, const uint8_t* codes,
                        float* sums) {
    for (int64_t column = 0; column < panel_columns; column += vectors * width)
      if (step.order == AccumulationOrder::bf16_tile)
        sum_codes<rows, apart, AccumulationOrder::bf16_tile>(step, a, stride, codes, step.length_of(g), column,
                                                             sums + column);
      else if (step.order == AccumulationOrder::bf16_pairs)
        sum_codes<rows, apart, AccumulationOrder::bf16_pairs>(step, a, stride, codes, step.length_of(g), column,
                                                              sums + column);
      else
        sum_codes<rows, apart, AccumulationOrder::fp32_chain>(step, a, stride, codes, step.length_of(g), column,
                                                              sums + column);
  }

  template <int rows, int apart, AccumulationOrder order>
  static void sum_codes(const QuantizedStep& step, const float* a, int64_t any_stride, const uint8_t* codes, int64_t k,
                        int64_t column, float* sums) {
    constexpr bool tile_order = order == AccumulationOrder::bf16_tile,
                   odd_first = order == AccumulationOrder::bf16_pairs;
    constexpr int chains = tile_order ? 2 : 1;  // even and odd k, or one chain
    const int64_t stride = apart > 0 ? apart : any_stride;
    const auto table = V::table(step.table);
    int64_t at[vectors];
    for (int v = 0; v < vectors; ++v) {
      const int64_t c = column + v * width;
      at[v] = c / tile_columns * code_tile_bytes + c % tile_columns * 4;
    }
    F chain[chains][rows][vectors], sum[rows][vectors];
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) chain[0][r][v] = sum[r][v] = V::zero();
    for (int64_t k0 = 0; k0 < k; k0 += k_block, codes += code_block_bytes) {
      if constexpr (tile_order)
        for (int r = 0; r < rows; ++r)
          for (int v = 0; v < vectors; ++v) chain[0][r][v] = chain[1][r][v] = V::zero();
      for (int64_t j = 0; j < 4; ++j, a += 8 * stride) {
        if (width == lanes || column == 0)
          V::prefetch(codes + prefetch_distance_bytes + j * 128),
              V::prefetch(codes + prefetch_distance_bytes + j * 128 + 64);
        typename V::Nibbles bits[vectors];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) bits[v] = V::nibbles(codes + at[v] + j * 64);
#pragma GCC unroll 8
        for (int j8 = 0; j8 < 8; ++j8) {
          const int i = odd_first ? j8 ^ 1 : j8;
#pragma GCC unroll 2
          for (int v = 0; v < vectors; ++v) {
            const F w = V::look_up(table, bits[v], int(nibble_of(i)));
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r) {
              F& to = chain[tile_order ? i % 2 : 0][r][v];
              to = V::fma(V::set1(a[i * stride + r]), w, to);
            }
          }
        }
      }
      if constexpr (tile_order)
        for (int r = 0; r < rows; ++r)
          for (int v = 0; v < vectors; ++v) sum[r][v] = V::add(sum[r][v], V::add(chain[0][r][v], chain[1][r][v]));
    }
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v)
        V::store(sums + r * panel_columns + v * width, tile_order ? sum[r][v] : chain[0][r][v]);
  }

  // Many rows: the codes are first decoded to a part of a panel.
  static void read_out(const QuantizedStep& step, int64_t g, const uint8_t* codes, int64_t first, int64_t rows,
                       float* sums) {
    constexpr int64_t piece = 256;
    alignas(64) float panel[piece * panel_columns];
    const int64_t length = step.length_of(g);
    for (int64_t k0 = 0; k0 < length; k0 += piece) {
      const int64_t k = std::min(piece, length - k0);
      const uint8_t* const from = codes + k0 / k_block * code_block_bytes;
      if (step.order != AccumulationOrder::fp32_chain)
        to_tiles(step.table, from, k, reinterpret_cast<bf16*>(panel));
      else
        to_rows(step.table, from, k, panel);
      for (int64_t r = 0; r < rows; r += block_rows) {
        const int64_t count = std::min(block_rows, rows - r);
        const float* const a = step.a + (first + r) * step.padded_k + (g * step.group + k0) * count;
        float* const to = sums + r * panel_columns;
        const bf16* const tiles = reinterpret_cast<const bf16*>(panel);
        if (step.order == AccumulationOrder::bf16_tile)
          Tile::template rows_bf16<AccumulationOrder::bf16_tile>(count, a, count, tiles, k, to, panel_columns, k0 == 0,
                                                                 typename Tile::Nothing());
        else if (step.order == AccumulationOrder::bf16_pairs)
          Tile::template rows_bf16<AccumulationOrder::bf16_pairs>(count, a, count, tiles, k, to, panel_columns, k0 == 0,
                                                                  typename Tile::Nothing());
        else
          Tile::rows_f32(count, a, count, {panel, panel_columns, panel_columns}, k, to, panel_columns, k0 == 0);
      }
    }
  }

  // The eight codes of a column.
  static uint32_t eight(const uint8_t* codes) {
    uint32_t all;
    std::memcpy(&all, codes, sizeof all);
    return all;
  }
  // Pairs of consecutive k in the layout of a bf16 tile.
  static void to_tiles(const float* table, const uint8_t* codes, int64_t k, bf16* to) {
    uint32_t even[16], odd[16];
    for (uint32_t code = 0; code < 16; ++code)
      even[code] = narrow(table[code]).bits, odd[code] = uint32_t(narrow(table[code]).bits) << 16;
    for (int64_t tile = 0; tile < 2 * k / k_block; ++tile, codes += code_tile_bytes, to += tile_elements)
      for (int64_t j = 0; j < 4; ++j)
        for (int64_t c = 0; c < tile_columns; ++c) {
          const uint32_t all = eight(codes + (j * tile_columns + c) * 4);
          for (int64_t pair = 0; pair < 4; ++pair) {
            const uint32_t both = even[all >> 4 * pair & 15] | odd[all >> (16 + 4 * pair) & 15];
            std::memcpy(to + ((j * 4 + pair) * tile_columns + c) * 2, &both, sizeof both);
          }
        }
  }
  static void to_rows(const float* table, const uint8_t* codes, int64_t k, float* to) {
    for (int64_t i = 0; i < k; ++i, to += panel_columns)
      for (int64_t c = 0; c < panel_columns; ++c) {
        const uint8_t* const at = codes + i / k_block * code_block_bytes + c / tile_columns * code_tile_bytes +
                                  (i % k_block / 8 * tile_columns + c % tile_columns) * 4;
        to[c] = table[eight(at) >> 4 * nibble_of(i) & 15];
      }
  }
};

}  // namespace easydel::kernels
