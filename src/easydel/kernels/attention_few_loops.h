// Attention of few rows over many keys (decoding), in the order of attention_loops.h, but keys and values are read once
// and in place, and prefetched a block ahead: keys while this block's scores are computed, values while its values are
// summed, spread evenly and in memory order. Prefetching them all at once would stall the rest; another order would
// defeat the hardware prefetcher. Included by loops_<set>.cpp only, through attention_loops.h.
#pragma once

#include "easydel/kernels/attention_step.h"
#include "easydel/kernels/tiles.h"
#include "easydel/kernels/wide.h"

namespace easydel::kernels {

template <class V>
struct FewRows {
  using F = typename V::F;
  using Tile = Tiles<V>;
  static constexpr int width = V::width;

  // Whether keys are read as pairs of bf16 and values in place. A vector never reads past the end of a row.
  static bool pairs_of_keys(const AttentionStep& step, const AttentionRows& rows) {
    return width > 1 && rows.count <= block_rows && step.k.dtype == DType::bf16 && step.spec.head_dim % k_block == 0;
  }
  static bool values_in_place(const AttentionStep& step, const AttentionRows& rows) {
    return width > 1 && rows.count <= block_rows && step.spec.v_dim % lanes == 0;
  }

  // Packs keys [begin, begin + count) of one kv head as a panel of 64 columns of a bf16 weight, [dim / 32][four tiles].
  // The columns of missing keys are arbitrary. count is at least 1.
  static void transpose_keys(const AttentionSequence& s, const Heads& k, int64_t head, int64_t begin, int64_t count,
                             int64_t dim, bf16* to) {
    const bf16* row[key_block] = {};
    find_rows(s, k, head, begin, count, row);
    for (int64_t r = count; r < key_block; ++r) row[r] = row[r - 1];
    const int64_t prefetch_distance =
        begin + key_block < s.keys && k.token_stride != dim ? next_block_distance(s, k, begin) : 0;
    transpose_rows(row, count, dim, prefetch_distance, to, key_block * k_block);
  }
  // The same for `count` rows given by pointers; up to 15 more are read. Their length is a multiple of 32, and blocks
  // of 32 are `step` apart. The data read next are `prefetch_distance` elements after each row (0: unknown).
  static void transpose_rows(const bf16* const* row, int64_t count, int64_t dim, int64_t prefetch_distance, bf16* to,
                             int64_t step) {
    for (int64_t first = 0; first < count; first += tile_columns) {
      bf16* tile = to + first / tile_columns * tile_elements;
      for (int64_t d = 0; d < dim; d += k_block, tile += step)
        for (int64_t r = 0; r < tile_columns; r += width) {  // a pair of bf16 moves as one float
          for (int64_t pair = 0; pair < tile_columns; pair += width) {
            F pairs[width];
#pragma GCC unroll 16
            for (int64_t j = 0; j < width; ++j) {
              const bf16* const from = row[first + r + j] + d + 2 * pair;
              pairs[j] = V::load_pairs(from);
              if (prefetch_distance && pair == 0) V::prefetch(from + prefetch_distance);
            }
            V::transpose(pairs);
#pragma GCC unroll 16
            for (int64_t j = 0; j < width; ++j) V::store_pairs(tile + ((pair + j) * tile_columns + r) * 2, pairs[j]);
          }
        }
    }
  }

  // Prefetches the keys after the block that begins at `block`, if they are contiguous: a cache line per tile and pair
  // of k.
  struct NextKeys {
    const bf16 *next = nullptr, *end = nullptr;

    NextKeys(const AttentionSequence& s, const Heads& k, int64_t head, int64_t block, int64_t dim) {
      const int64_t begin = block + key_block;
      if (begin >= s.keys || k.token_stride != dim || (s.pages && s.page_tokens % key_block != 0)) return;
      next = static_cast<const bf16*>(key_at(s, k, begin, head));
      end = next + std::min(key_block, s.keys - begin) * dim;
    }
    void operator()(const bf16*, int, int64_t columns) {
      for (int64_t c = 0; c < columns && next < end; c += tile_columns, next += k_block) V::prefetch(next);
    }
  };

  // out [rows][v_step] += weights [rows][64] x values, for keys [begin, end) of the block that begins at `block`.
  static void add_values(const AttentionSequence& s, const Heads& v, int64_t head, int64_t block, Range keys,
                         int64_t rows, const float* weights, int64_t v_dim, float* out, int64_t v_step) {
    if (v.dtype == DType::f32)
      add_values_of<float>(s, v, head, block, keys, rows, weights, v_dim, out, v_step);
    else
      add_values_of<bf16>(s, v, head, block, keys, rows, weights, v_dim, out, v_step);
  }

  // Addresses of the `count` keys or values of one kv head starting at `begin`; Row is const bf16* or const void*.
  template <class Row>
  static void find_rows(const AttentionSequence& s, const Heads& x, int64_t head, int64_t begin, int64_t count,
                        Row* rows) {
    const int64_t step = x.token_stride * bytes_of(x.dtype);
    for (int64_t t = 0; t < count;) {
      const int64_t stop = s.pages ? std::min(count, t + s.page_tokens - (begin + t) % s.page_tokens) : count;
      const char* row = static_cast<const char*>(key_at(s, x, begin + t, head));
      for (; t < stop; ++t, row += step) rows[t] = static_cast<Row>(static_cast<const void*>(row));
    }
  }

 private:
  template <class T>
  static void add_values_of(const AttentionSequence& s, const Heads& v, int64_t head, int64_t block, Range keys,
                            int64_t rows, const float* weights, int64_t v_dim, float* out, int64_t v_step) {
    constexpr int64_t max_keys = 32;
    const int64_t prefetch_distance = next_block_distance(s, v, block);
    for (int64_t t = keys.begin; t < keys.end;) {
      int64_t count = std::min(max_keys, keys.end - t);
      if (s.pages) count = std::min(count, s.page_tokens - (block + t) % s.page_tokens);
      const T* const from = static_cast<const T*>(key_at(s, v, block + t, head));
      add_rows(rows, weights + t, ValueRows<T>{from, v.token_stride, prefetch_distance}, count, v_dim, out, v_step);
      t += count;
    }
  }

  // Values of one kv head in rows `stride` elements apart; the data `prefetch_distance` elements further are
  // prefetched.
  template <class T>
  struct ValueRows {
    const T* data;
    int64_t stride, prefetch_distance;
    ValueRows from(int64_t column) const { return {data + column, stride, prefetch_distance}; }
  };

  template <int rows, int vectors, class T>
  static void chain(const float* weights, ValueRows<T> values, int64_t keys, float* out, int64_t out_step) {
    const T* v = values.data;
    F sum[rows][vectors];
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < vectors; ++i) sum[r][i] = V::load(out + r * out_step + i * width);
    for (int64_t t = 0; t < keys; ++t, v += values.stride) {
#pragma GCC unroll 4
      for (int i = 0; i < vectors * width; i += 64 / int(sizeof(T))) V::prefetch(v + values.prefetch_distance + i);
      F value[vectors];
#pragma GCC unroll 4
      for (int i = 0; i < vectors; ++i) value[i] = V::load(v + i * width);
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const F weight = V::set1(weights[r * key_block + t]);
#pragma GCC unroll 4
        for (int i = 0; i < vectors; ++i) sum[r][i] = V::fma(weight, value[i], sum[r][i]);
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < vectors; ++i) V::store(out + r * out_step + i * width, sum[r][i]);
  }

  // As many rows and columns at a time as fit into the registers.
  template <int rows = Tile::max_rows, class T>
  static void add_rows(int64_t count, const float* weights, ValueRows<T> values, int64_t keys, int64_t v_dim,
                       float* out, int64_t out_step) {
    if constexpr (rows > 0) {
      if constexpr (rows > 3)
        if (count <= 3) return add_rows<3>(count, weights, values, keys, v_dim, out, out_step);
      if (count < rows) return add_rows<rows - 1>(count, weights, values, keys, v_dim, out, out_step);
      int64_t d = 0;
      if constexpr (2 * rows <= Tile::max_rows)
        for (; d + 4 * width <= v_dim; d += 4 * width) chain<rows, 4>(weights, values.from(d), keys, out + d, out_step);
      for (; d + 2 * width <= v_dim; d += 2 * width) chain<rows, 2>(weights, values.from(d), keys, out + d, out_step);
      for (; d < v_dim; d += width) chain<rows, 1>(weights, values.from(d), keys, out + d, out_step);
      if (count > rows)
        add_rows(count - rows, weights + rows * key_block, values, keys, v_dim, out + rows * out_step, out_step);
    }
  }
};

}  // namespace easydel::kernels
