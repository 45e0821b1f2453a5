// The products of attention's forward in the order bf16_pairs, for a vector type V and a way D to multiply pairs of
// bf16. Queries, weights, keys and values are all stored as pairs: of dimensions for the scores, of keys for the
// values. Included by loops_<set>.cpp only.
#pragma once

#include "easydel/kernels/attention_bf16_loops.h"
#include "easydel/kernels/attention_pairs.h"

namespace easydel::kernels {

template <class V, class D>
class PairAttention {
 public:
  using F = typename V::F;
  using Few = FewRows<V>;
  using Tile = Tiles<V>;
  using Packing = AttentionPairs<V, D>;
  using Weight = bf16;
  using Seen = SeenKeys<block_rows>;
  static constexpr int width = V::width;
  static constexpr int64_t tile_rows = block_rows;

  PairAttention(const AttentionStep& step, const AttentionRows& rows, const bf16* const* queries)
      : step_(step), rows_(rows), dim_(round_up(step.spec.head_dim, k_block)), values_(step, rows) {
    thread_local Scratch<bf16> queries_of_thread, keys_of_thread;
    queries_ = queries_of_thread.at_least(divide_up(max_attention_rows, block_rows) * tile_columns * dim_);
    keys_ = keys_of_thread.at_least(key_block * dim_);
    for (int64_t t = 0; t < rows.count; t += block_rows)
      Packing::template transpose<tile_columns>([&](int64_t r) { return queries[t + r]; },
                                                std::min(block_rows, rows.count - t), step.spec.head_dim, dim_,
                                                queries_of(t));
  }

  void begin(int64_t block) {
    block_ = block;
    transpose_keys();
    begin_values(block);
  }
  void begin_values(int64_t block) { values_.begin(block); }

  void multiply_queries(int64_t t, int64_t count, Range any, float* scores) const {
    const int64_t begin = any.begin / panel_columns * panel_columns, end = round_up(any.end, panel_columns);
    const Pairs keys{keys_, key_block, 0, dim_ / 2};
    if (rows_.count <= block_rows)
      multiply<1>(count, queries_, tile_columns, keys, begin, end, scores, key_block, true,
                  typename Few::NextKeys(*rows_.sequence, step_.k, rows_.kv_head, block_, step_.spec.head_dim));
    else
      multiply<1>(count, queries_of(t), tile_columns, keys, begin, end, scores, key_block, true,
                  typename Tile::Nothing());
  }

  static int64_t weight_at(int64_t row, int64_t key, int64_t) { return row * key_block + key; }
  static void store_weights(bf16* to, F x) { D::store_weights(to, x); }
  void add_values(const Seen& seen, int64_t count, const bf16* weights, float* out) {
    values_.add(seen, count, weights, out);
  }
  // The same of all 64 keys, whose values are codes (int8_t or i4_pair) `stride` bytes apart; the data
  // `prefetch_distance` bytes after each row are prefetched. Only if the dimensions fill whole panels.
  static constexpr bool reads_codes = requires(const int8_t* codes, typename D::Right (&to)[2]) {
    D::right_of_codes(codes, codes, to);
  };
  template <int rows = D::max_rows, class Code>
  static void add_codes(int64_t count, const bf16* weights, const Code* codes, int64_t stride,
                        int64_t prefetch_distance, int64_t v_dim, float* out) {
    if constexpr (rows > 0) {
      if constexpr (rows > 3)
        if (count <= 3) return add_codes<3>(count, weights, codes, stride, prefetch_distance, v_dim, out);
      if (count < rows) return add_codes<rows - 1>(count, weights, codes, stride, prefetch_distance, v_dim, out);
      int64_t c = 0;
      if constexpr (3 * rows <= D::max_rows)
        for (; c + 4 * width <= v_dim; c += 4 * width)
          chain_codes<rows, 4>(weights, after(codes, c), stride, prefetch_distance, out + c, v_dim);
      for (; c < v_dim; c += 2 * width)
        chain_codes<rows, 2>(weights, after(codes, c), stride, prefetch_distance, out + c, v_dim);
      if (count > rows)
        add_codes<>(count - rows, weights + rows * key_block, codes, stride, prefetch_distance, v_dim,
                    out + rows * v_dim);
    }
  }

 private:
  static constexpr int64_t pairs_of_tile = k_block / 2, pairs_of_block = key_block / 2;

  bf16* queries_of(int64_t t) const { return queries_ + t / block_rows * tile_columns * dim_; }

  // The block's keys as Pairs of 64 columns; the columns of missing keys are arbitrary.
  void transpose_keys() {
    const AttentionSequence& s = *rows_.sequence;
    const int64_t present = std::min(key_block, s.keys - block_);
    if (step_.spec.head_dim == dim_)
      return Few::transpose_keys(s, step_.k, rows_.kv_head, block_, present, dim_, keys_);
    const bf16* row[key_block];
    Few::find_rows(s, step_.k, rows_.kv_head, block_, present, row);
    Packing::template transpose<key_block>([&](int64_t r) { return row[r]; }, present, step_.spec.head_dim, dim_,
                                           keys_);
  }

  // The right side of a product: pairs [begin, end) of [pair / 16][column / 16][16 pairs][16 columns].
  struct Pairs {
    const bf16* data;
    int64_t columns, begin, end;
    const bf16* at(int64_t pair, int64_t column) const {
      return data + pair / pairs_of_tile * (columns * k_block) + pair % pairs_of_tile * k_block + Tile::tile_of(column);
    }
  };

  // The values of one kv head, one block of keys at a time.
  class Values {
   public:
    Values(const AttentionStep& step, const AttentionRows& rows)
        : step_(step),
          s_(*rows.sequence),
          head_(rows.kv_head),
          v_step_(step.v_step()),
          few_(rows.count <= block_rows && step.spec.v_dim % D::columns_in_place == 0 && s_.page_tokens % 2 == 0) {
      thread_local Scratch<bf16> of_thread;
      packed_ = of_thread.at_least((key_block + k_block) * v_step_);
      one_pair_ = packed_ + key_block * v_step_;
    }

    void begin(int64_t block) {
      block_ = block, is_packed_ = false;
      ahead_ = next_block_distance(s_, step_.v, block);
    }

    // out [count][v_step] += weights [count][64] x values.
    void add(const Seen& seen, int64_t count, const bf16* weights, float* out) {
      if (few_ && seen.same) return add_seen(seen.any, count, weights, out, true);
      pack();
      // Adding a zero for an invisible key is harmless unless it meets an infinity or a NaN.
      if (finite_) return add_pairs(seen.any.begin / 2, divide_up(seen.any.end, 2), count, weights, out);
      seen.for_equal_rows(count, [&](int64_t r, int64_t some, Range keys) {
        add_seen(keys, some, weights + r * key_block, out + r * v_step_, false);
      });
    }

   private:
    const bf16* row(int64_t key) const { return static_cast<const bf16*>(key_at(s_, step_.v, block_ + key, head_)); }
    void pack() {
      if (is_packed_) return;
      const int64_t present = std::min(key_block, s_.keys - block_);
      const bf16* rows[key_block + 1];
      Few::find_rows(s_, step_.v, head_, block_, present, rows);
      rows[present] = nullptr;
      finite_ = put(rows, divide_up(present, 2), packed_), is_packed_ = true;
    }
    bool put(const bf16* const* rows, int64_t pairs, bf16* to) const {
      return Packing::interleave(rows, pairs, step_.spec.v_dim, v_step_, {2 * tile_elements, v_step_ * k_block}, to);
    }

    void add_pairs(int64_t begin, int64_t end, int64_t count, const bf16* weights, float* out) const {
      multiply<pairs_of_block>(count, weights + 2 * begin, 1, {packed_, v_step_, begin, end}, 0, v_step_, out, v_step_,
                               false, typename Tile::Nothing());
    }
    // Rows that see the same keys: whole pairs together, then a first or last key without its neighbour.
    void add_seen(Range keys, int64_t count, const bf16* weights, float* out, bool in_place) const {
      const auto single_key = [&](int64_t key) {
        const bf16* pair[2] = {};
        pair[key % 2] = row(key);
        put(pair, 1, one_pair_);
        multiply<pairs_of_block>(count, weights + key / 2 * 2, 1, {one_pair_, v_step_, 0, 1}, 0, v_step_, out, v_step_,
                                 false, typename Tile::Nothing());
      };
      if (keys.begin % 2) single_key(keys.begin++);
      const int64_t end = keys.end / 2 * 2;
      if (keys.begin < end && in_place)
        add_in_place<>({keys.begin, end}, count, weights, out);
      else if (keys.begin < end)
        add_pairs(keys.begin / 2, end / 2, count, weights, out);
      if (keys.begin <= end && end < keys.end) single_key(end);
    }

    // Few rows read values in place while their distance is constant.
    template <int rows = D::max_rows>
    void add_in_place(Range keys, int64_t count, const bf16* weights, float* out) const {
      if constexpr (rows > 0) {
        if constexpr (rows > 3)
          if (count <= 3) return add_in_place<3>(keys, count, weights, out);
        if (count < rows) return add_in_place<rows - 1>(keys, count, weights, out);
        constexpr int64_t max_keys = 32;
        for (int64_t t = keys.begin; t < keys.end;) {
          int64_t some = std::min(max_keys, keys.end - t);
          if (s_.pages) some = std::min(some, s_.page_tokens - (block_ + t) % s_.page_tokens);
          const bf16* const from = row(t);
          int64_t c = 0;
          if constexpr (3 * rows <= D::max_rows)
            for (; c + 4 * width <= step_.spec.v_dim; c += 4 * width)
              chain_in_place<rows, 4>(weights + t, from + c, step_.spec.v_dim - c, some, out + c);
          for (; c < step_.spec.v_dim; c += 2 * width)
            chain_in_place<rows, 2>(weights + t, from + c, step_.spec.v_dim - c, some, out + c);
          t += some;
        }
        if (count > rows) add_in_place<>(keys, count - rows, weights + rows * key_block, out + rows * v_step_);
      }
    }
    template <int rows, int vectors>
    void chain_in_place(const bf16* weights, const bf16* v, int64_t columns, int64_t keys, float* out) const {
      F sum[rows][vectors];
      Tile::template load_sums<rows, vectors>(sum, out, v_step_, false);
      const int64_t stride = step_.v.token_stride;
      for (int64_t t = 0; t < keys; t += 2, v += 2 * stride) {
        typename D::Right right[vectors / 2][2];
#pragma GCC unroll 4
        for (int i = 0; i < vectors; i += 2) {
          V::prefetch(v + ahead_ + i * width), V::prefetch(v + ahead_ + stride + i * width);
          D::right_of_rows(v + i * width, v + stride + i * width, columns - i * width, right[i / 2]);
        }
#pragma GCC unroll 12
        for (int r = 0; r < rows; ++r) {
          const typename D::Left x = D::left(weights + r * key_block + t);
#pragma GCC unroll 4
          for (int i = 0; i < vectors; ++i) sum[r][i] = D::add(sum[r][i], right[i / 2][i % 2], x);
        }
      }
      Tile::template store_sums<rows, vectors>(sum, out, v_step_);
    }

    const AttentionStep& step_;
    const AttentionSequence& s_;
    int64_t head_, v_step_, block_ = 0, ahead_ = 0;
    bool few_, is_packed_ = false, finite_ = true;
    bf16 *packed_, *one_pair_;
  };

  // `count` codes further in a row; a multiple of 32.
  static const int8_t* after(const int8_t* row, int64_t count) { return row + count; }
  static const i4_pair* after(const i4_pair* row, int64_t count) { return row + count / 2; }

  template <int rows, int vectors, class Code>
  static void chain_codes(const bf16* weights, const Code* codes, int64_t stride, int64_t prefetch_distance, float* out,
                          int64_t v_step) {
    F sum[rows][vectors];
    Tile::template load_sums<rows, vectors>(sum, out, v_step, false);
    for (int64_t t = 0; t < key_block; t += 2, codes += 2 * stride) {
      V::prefetch(codes + prefetch_distance), V::prefetch(codes + prefetch_distance + stride);
      typename D::Right right[vectors / 2][2];
#pragma GCC unroll 4
      for (int i = 0; i < vectors; i += 2)
        D::right_of_codes(after(codes, i * width), after(codes + stride, i * width), right[i / 2]);
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const typename D::Left x = D::left(weights + r * key_block + t);
#pragma GCC unroll 4
        for (int i = 0; i < vectors; ++i) sum[r][i] = D::add(sum[r][i], right[i / 2][i % 2], x);
      }
    }
    Tile::template store_sums<rows, vectors>(sum, out, v_step);
  }

  // rows x (vectors x width) accumulators at c. In pairs, `a` moves by a_step per pair and by row_step per row.
  template <int rows, int vectors, int64_t row_step, class Ahead>
  static void chain(const bf16* a, int64_t a_step, const Pairs& b, int64_t column, float* c, int64_t c_step, bool first,
                    Ahead& ahead) {
    F sum[rows][vectors];
    Tile::template load_sums<rows, vectors>(sum, c, c_step, first);
    for (int64_t pair = b.begin; pair < b.end;) {
      const bf16* at = b.at(pair, column);
      const int64_t stop = std::min(b.end, (pair / pairs_of_tile + 1) * pairs_of_tile);
      for (; pair < stop; ++pair, at += k_block, a += 2 * a_step) {
        typename D::Right right[vectors];
#pragma GCC unroll 4
        for (int i = 0; i < vectors; ++i) right[i] = D::right(at + Tile::tile_of(int64_t(i) * width));
        ahead(at, rows, vectors * width);
#pragma GCC unroll 12
        for (int r = 0; r < rows; ++r) {
          const typename D::Left x = D::left(a + 2 * r * row_step);
#pragma GCC unroll 4
          for (int i = 0; i < vectors; ++i) sum[r][i] = D::add(sum[r][i], right[i], x);
        }
      }
    }
    Tile::template store_sums<rows, vectors>(sum, c, c_step);
  }

  // Multiplies `count` rows by columns [begin, end) of b (multiples of 32) into the same columns of c, with as many
  // rows and columns at a time as fit into the registers.
  template <int64_t row_step, int rows = D::max_rows, class Ahead>
  static void multiply(int64_t count, const bf16* a, int64_t a_step, const Pairs& b, int64_t begin, int64_t end,
                       float* c, int64_t c_step, bool first, Ahead&& ahead) {
    if constexpr (rows > 0) {
      if constexpr (rows > 3)
        if (count <= 3) return multiply<row_step, 3>(count, a, a_step, b, begin, end, c, c_step, first, ahead);
      if (count < rows) return multiply<row_step, rows - 1>(count, a, a_step, b, begin, end, c, c_step, first, ahead);
      int64_t column = begin;
      if constexpr (3 * rows <= D::max_rows)  // few chains: process more of them at once
        for (; column + 4 * width <= end; column += 4 * width)
          chain<rows, 4, row_step>(a, a_step, b, column, c + column, c_step, first, ahead);
      for (; column < end; column += 2 * width)
        chain<rows, 2, row_step>(a, a_step, b, column, c + column, c_step, first, ahead);
      if (count > rows)
        multiply<row_step>(count - rows, a + 2 * rows * row_step, a_step, b, begin, end, c + rows * c_step, c_step,
                           first, ahead);
    }
  }

  const AttentionStep& step_;
  const AttentionRows& rows_;
  int64_t dim_, block_ = 0;
  bf16 *queries_, *keys_;
  Values values_;
};

}  // namespace easydel::kernels
