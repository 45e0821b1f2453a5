// The inner loops of attention's forward in the order bf16_pairs, for a vector type V and a way D to multiply pairs of
// bf16. Queries, weights, keys and values all lie as pairs: of dimensions for the scores, of keys for the values.
// Included by loops_<set>.cpp only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "easydel/kernels/attention_loops.h"
#include "easydel/kernels/isa.h"

namespace easydel::kernels {

// Pairs of bf16 multiplied by FMAs.
template <class V>
struct FmaPairs {
  using F = typename V::F;
  struct Left {
    F even, odd;
  };
  using Right = Left;
  static constexpr int most_rows = V::registers == 32 ? 12 : 4;
  static constexpr int64_t columns_in_place = 2 * V::width;

  static Left left(const bf16* pair) {
    uint32_t both;
    std::memcpy(&both, pair, sizeof both);
    return {V::set1(std::bit_cast<float>(both << 16)), V::set1(std::bit_cast<float>(both & 0xffff0000))};
  }
  static Right right(const bf16* pairs) { return {V::even(pairs), V::odd(pairs)}; }
  static F add(F sum, Right b, Left a) { return V::fma(a.even, b.even, V::fma(a.odd, b.odd, sum)); }

  // Of two rows, of 2 x width columns; whole ones where columns_in_place divides their number.
  static void right_of_rows(const bf16* even, const bf16* odd, int64_t, Right (&to)[2]) {
    for (int i = 0; i < 2; ++i) to[i] = {V::load(even + i * V::width), V::load(odd + i * V::width)};
  }
  // Up to 32 columns of two rows side by side, in two tiles' rows of sixteen; missing ones and a null row are zeros.
  // Whether all are finite.
  static bool interleave(const bf16* even, const bf16* odd, int64_t columns, bf16* first, bf16* last) {
    constexpr unsigned exponent = 0x7f80;
    unsigned infinite = 0;
    for (int64_t c = 0; c < panel_columns; ++c) {
      bf16* const to = c < tile_columns ? first + 2 * c : last + 2 * (c - tile_columns);
      to[0] = even && c < columns ? even[c] : bf16{0};
      to[1] = odd && c < columns ? odd[c] : bf16{0};
      infinite |= unsigned((to[0].bits & exponent) == exponent) | unsigned((to[1].bits & exponent) == exponent);
    }
    return infinite == 0;
  }
  static void store_weights(bf16* to, F x) { V::store(to, x); }
};

template <class V, class D>
struct PairAttentionLoops {
  using F = typename V::F;
  using Loops = AttentionLoops<V>;
  using Few = FewRows<V>;
  using W = Wide<V>;
  using Math = WideMath<V>;
  using Tile = Tiles<V>;
  using Row = typename Loops::Row;
  using Score = typename Loops::Score;
  static constexpr int width = V::width;
  static constexpr int64_t pairs_of_tile = k_block / 2;

  // One chunk of keys of up to 96 rows; see attention.h for the order.
  static void attend_chunk(const AttentionStep& step, const AttentionRows& rows, int64_t chunk, AttentionPartial part) {
    const FlushDenormals flush;
    const AttentionSpec& spec = step.spec;
    const AttentionSequence& s = *rows.sequence;
    const int64_t group = step.group(), dim = round_up(spec.head_dim, k_block), v_step = step.v_step();
    const Score score(spec);
    thread_local Scratch<bf16> queries_of_thread, keys_of_thread;
    bf16* const queries = queries_of_thread.at_least(most_attention_rows * dim);
    bf16* const keys = keys_of_thread.at_least(key_block * dim);
    Values values(step, rows);
    alignas(64) float scores[block_rows * key_block];
    alignas(64) bf16 weights[block_rows * key_block];

    Row state[most_attention_rows];
    Range all{s.keys, 0};
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t query = (rows.first + r) / group, head = rows.kv_head * group + (rows.first + r) % group;
      const Range seen = visible(spec, s, query).within(chunk * chunk_keys, (chunk + 1) * chunk_keys);
      state[r] = {seen, -INFINITY, W::zero(), typename Loops::Slope(spec, head, s.past + query)};
      if (!seen.empty()) all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
    }
    std::memset(part.out, 0, size_t(rows.count * v_step) * sizeof(float));
    for (int64_t t = 0; t < rows.count; t += block_rows)
      turn_queries(step, rows, t, std::min(block_rows, rows.count - t), dim, queries + t * dim);

    for (int64_t block = all.begin / key_block * key_block; block < all.end; block += key_block) {
      turn_keys(step, rows, block, dim, keys);
      values.begin(block);
      for (int64_t t = 0; t < rows.count; t += block_rows) {
        const int64_t count = std::min(block_rows, rows.count - t);
        const Seen seen(state + t, count, block);
        if (seen.any.empty()) continue;
        const int64_t begin = seen.any.begin / panel_columns * panel_columns;
        const int64_t end = round_up(seen.any.end, panel_columns);
        const Pairs of_keys{keys, key_block, 0, dim / 2};
        if (rows.count <= block_rows)
          multiply<1>(count, queries, count, of_keys, begin, end, scores, key_block, true,
                      typename Few::NextKeys(s, step.k, rows.kv_head, block, spec.head_dim));
        else
          multiply<1>(count, queries + t * dim, count, of_keys, begin, end, scores, key_block, true,
                      typename Tile::Nothing());
        float* const out = part.out + t * v_step;
        for (int64_t r = 0; r < count; ++r) {
          bf16* const own = weights + r * key_block;
          if (seen.of_row[r].empty())
            std::memset(own, 0, size_t(key_block) * sizeof(bf16));
          else
            Loops::soften(score, block, scores + r * key_block, seen.of_row[r], state[t + r], out + r * v_step, v_step,
                          [&](int64_t i, W weight) { store_weights(own + i, weight); });
        }
        values.add(seen, count, weights, out);
      }
    }
    for (int64_t r = 0; r < rows.count; ++r) part.top[r] = state[r].top, part.sum[r] = Math::sum(state[r].sums);
  }

 private:
  static constexpr int64_t pairs_of_block = key_block / 2;

  // What the rows of a tile see of a block, counted from its begin.
  struct Seen {
    Range any{key_block, 0}, of_row[block_rows];
    bool same = true;  // all rows see the same

    Seen(const Row* rows, int64_t count, int64_t block) {
      for (int64_t r = 0; r < count; ++r) {
        const Range here = rows[r].keys.within(block, block + key_block);
        of_row[r] = {here.begin - block, here.end - block};
        same &= of_row[r].begin == of_row[0].begin && of_row[r].end == of_row[0].end;
        if (!of_row[r].empty()) any = {std::min(any.begin, of_row[r].begin), std::max(any.end, of_row[r].end)};
      }
    }
  };

  // The right side of a product: pairs [begin, end) of [pair / 16][column / 16][16 pairs][16 columns].
  struct Pairs {
    const bf16* data;
    int64_t columns, begin, end;
    const bf16* at(int64_t pair, int64_t column) const {
      return data + pair / pairs_of_tile * (columns * k_block) + pair % pairs_of_tile * k_block + Tile::tile_of(column);
    }
  };

  // The values of one kv head, a block of keys at a time.
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

    void begin(int64_t block) { block_ = block, is_packed_ = false; }

    // out [count][v_step] += weights [count][64] values.
    void add(const Seen& seen, int64_t count, const bf16* weights, float* out) {
      if (few_ && seen.same) return add_seen(seen.any, count, weights, out, true);
      pack();
      // A zero for what a row does not see adds nothing, unless it meets an infinity or a NaN.
      if (finite_) return add_pairs(seen.any.begin / 2, divide_up(seen.any.end, 2), count, weights, out);
      if (seen.same) return add_seen(seen.any, count, weights, out, false);
      for (int64_t r = 0; r < count; ++r)
        if (!seen.of_row[r].empty()) add_seen(seen.of_row[r], 1, weights + r * key_block, out + r * v_step_, false);
    }

   private:
    const bf16* row(int64_t key) const {
      return static_cast<const bf16*>(step_.v.at(Few::token_at(s_, block_ + key), head_));
    }
    // Keys `even` and `odd`, of which one may be missing (negative), to pair `pair` of what Pairs describes.
    bool put(int64_t even, int64_t odd, int64_t pair, bf16* to) const {
      const bf16 *const a = even < 0 ? nullptr : row(even), *const b = odd < 0 ? nullptr : row(odd);
      to += pair / pairs_of_tile * (v_step_ * k_block) + pair % pairs_of_tile * k_block;
      bool finite = true;
      for (int64_t c = 0; c < v_step_; c += panel_columns, to += 2 * tile_elements)
        finite &= D::interleave(a ? a + c : nullptr, b ? b + c : nullptr, step_.spec.v_dim - c, to, to + tile_elements);
      return finite;
    }
    void pack() {
      if (is_packed_) return;
      is_packed_ = finite_ = true;
      const int64_t present = std::min(key_block, s_.keys - block_);
      for (int64_t t = 0; t < present; t += 2) finite_ &= put(t, t + 1 < present ? t + 1 : -1, t / 2, packed_);
    }

    void add_pairs(int64_t begin, int64_t end, int64_t count, const bf16* weights, float* out) const {
      multiply<pairs_of_block>(count, weights + 2 * begin, 1, {packed_, v_step_, begin, end}, 0, v_step_, out, v_step_,
                               false, typename Tile::Nothing());
    }
    // Rows that see the same: whole pairs together, a key without its neighbour before or behind them.
    void add_seen(Range keys, int64_t count, const bf16* weights, float* out, bool in_place) const {
      const auto alone = [&](int64_t even, int64_t odd) {
        put(even, odd, 0, one_pair_);
        multiply<pairs_of_block>(count, weights + std::max(even, odd) / 2 * 2, 1, {one_pair_, v_step_, 0, 1}, 0,
                                 v_step_, out, v_step_, false, typename Tile::Nothing());
      };
      if (keys.begin % 2) alone(-1, keys.begin++);
      const int64_t end = keys.end / 2 * 2;
      if (keys.begin < end && in_place)
        add_in_place<>({keys.begin, end}, count, weights, out);
      else if (keys.begin < end)
        add_pairs(keys.begin / 2, end / 2, count, weights, out);
      if (keys.begin <= end && end < keys.end) alone(end, -1);
    }

    // Few rows read values where they are, as far as they lie evenly apart.
    template <int rows = D::most_rows>
    void add_in_place(Range keys, int64_t count, const bf16* weights, float* out) const {
      if constexpr (rows > 0) {
        if constexpr (rows > 3)
          if (count <= 3) return add_in_place<3>(keys, count, weights, out);
        if (count < rows) return add_in_place<rows - 1>(keys, count, weights, out);
        constexpr int64_t together = 32;
        for (int64_t t = keys.begin; t < keys.end;) {
          int64_t some = std::min(together, keys.end - t);
          if (s_.pages) some = std::min(some, s_.page_tokens - (block_ + t) % s_.page_tokens);
          const bf16* const from = row(t);
          int64_t c = 0;
          if constexpr (3 * rows <= D::most_rows)
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
      load_sums<rows, vectors>(sum, out, v_step_, false);
      const int64_t stride = step_.v.token_stride;
      for (int64_t t = 0; t < keys; t += 2, v += 2 * stride) {
        typename D::Right right[vectors / 2][2];
#pragma GCC unroll 4
        for (int i = 0; i < vectors; i += 2) {
          V::prefetch(v + key_block * stride + i * width), V::prefetch(v + (key_block + 1) * stride + i * width);
          D::right_of_rows(v + i * width, v + stride + i * width, columns - i * width, right[i / 2]);
        }
#pragma GCC unroll 12
        for (int r = 0; r < rows; ++r) {
          const typename D::Left x = D::left(weights + r * key_block + t);
#pragma GCC unroll 4
          for (int i = 0; i < vectors; ++i) sum[r][i] = D::add(sum[r][i], right[i / 2][i % 2], x);
        }
      }
      store_sums<rows, vectors>(sum, out, v_step_);
    }

    const AttentionStep& step_;
    const AttentionSequence& s_;
    int64_t head_, v_step_, block_ = 0;
    bool few_, is_packed_ = false, finite_ = true;
    bf16 *packed_, *one_pair_;
  };

  static void store_weights(bf16* to, W weights) {
#pragma GCC unroll 16
    for (int i = 0; i < W::parts; ++i) D::store_weights(to + i * width, weights.part[i]);
  }

  // [dim / 2][count] pairs, dim padded.
  static void turn_queries(const AttentionStep& step, const AttentionRows& rows, int64_t first, int64_t count,
                           int64_t dim, bf16* to) {
    thread_local Scratch<float> of_thread;  // a pair of bf16 moves as one float
    float* const pairs = of_thread.at_least(block_rows * dim / 2);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t i = rows.first + first + r, group = step.group();
      char* const row = reinterpret_cast<char*>(pairs + r * dim / 2);
      const size_t bytes = size_t(step.spec.head_dim) * sizeof(bf16);
      std::memcpy(row, step.q.at(rows.sequence->first_query + i / group, rows.kv_head * group + i % group), bytes);
      std::memset(row + bytes, 0, size_t(dim) * sizeof(bf16) - bytes);
    }
    Tile::turn([&](int64_t r) { return pairs + r * dim / 2; }, count, dim / 2, count, reinterpret_cast<float*>(to));
  }

  // The keys of a block as Pairs of 64 columns; those of missing keys are anything.
  static void turn_keys(const AttentionStep& step, const AttentionRows& rows, int64_t block, int64_t dim, bf16* to) {
    const AttentionSequence& s = *rows.sequence;
    const int64_t present = std::min(key_block, s.keys - block), own = step.spec.head_dim;
    if (own == dim) return Few::turn_keys(s, step.k, rows.kv_head, block, present, dim, to);
    thread_local Scratch<bf16> of_thread;
    bf16* const padded = of_thread.at_least(key_block * dim);
    const bf16* row[key_block];
    for (int64_t r = 0; r < key_block; ++r) {
      row[r] = padded + std::min(r, present - 1) * dim;
      if (r >= present) continue;
      bf16* const to_row = padded + r * dim;
      std::memcpy(to_row, step.k.at(Few::token_at(s, block + r), rows.kv_head), size_t(own) * sizeof(bf16));
      std::memset(to_row + own, 0, size_t(dim - own) * sizeof(bf16));
    }
    Few::turn_rows(row, present, dim, 0, to);
  }

  template <int rows, int vectors>
  static void load_sums(F (&sum)[rows][vectors], const float* c, int64_t c_step, bool first) {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < vectors; ++i) sum[r][i] = first ? V::zero() : V::load(c + r * c_step + i * width);
  }
  template <int rows, int vectors>
  static void store_sums(const F (&sum)[rows][vectors], float* c, int64_t c_step) {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < vectors; ++i) V::store(c + r * c_step + i * width, sum[r][i]);
  }

  // rows x (vectors x width) sums at c. In pairs, `a` moves by a_step for each and by row_step for each row.
  template <int rows, int vectors, int64_t row_step, class Ahead>
  static void chain(const bf16* a, int64_t a_step, const Pairs& b, int64_t column, float* c, int64_t c_step, bool first,
                    Ahead& ahead) {
    F sum[rows][vectors];
    load_sums<rows, vectors>(sum, c, c_step, first);
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
    store_sums<rows, vectors>(sum, c, c_step);
  }

  // `count` rows times columns [begin, end) of b, multiples of 32, to the same columns of c, with as many rows and
  // columns at a time as the registers hold.
  template <int64_t row_step, int rows = D::most_rows, class Ahead>
  static void multiply(int64_t count, const bf16* a, int64_t a_step, const Pairs& b, int64_t begin, int64_t end,
                       float* c, int64_t c_step, bool first, Ahead&& ahead) {
    if constexpr (rows > 0) {
      if constexpr (rows > 3)
        if (count <= 3) return multiply<row_step, 3>(count, a, a_step, b, begin, end, c, c_step, first, ahead);
      if (count < rows) return multiply<row_step, rows - 1>(count, a, a_step, b, begin, end, c, c_step, first, ahead);
      int64_t column = begin;
      if constexpr (3 * rows <= D::most_rows)  // few chains: more of them at once
        for (; column + 4 * width <= end; column += 4 * width)
          chain<rows, 4, row_step>(a, a_step, b, column, c + column, c_step, first, ahead);
      for (; column < end; column += 2 * width)
        chain<rows, 2, row_step>(a, a_step, b, column, c + column, c_step, first, ahead);
      if (count > rows)
        multiply<row_step>(count - rows, a + 2 * rows * row_step, a_step, b, begin, end, c + rows * c_step, c_step,
                           first, ahead);
    }
  }
};

}  // namespace easydel::kernels
