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
  // The largest of some numbers, but for their sign.
  struct Largest {
    uint16_t bits = 0;
    bool finite() const { return bits < 0x7f80; }
  };
  // Up to 32 columns of two rows side by side, in two tiles' rows of sixteen; missing ones and a null row are zeros.
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

template <class V, class D>
struct PairAttentionLoops {
  using F = typename V::F;
  using Loops = AttentionLoops<V>;
  using Few = FewRows<V>;
  using W = Wide<V>;
  using Math = WideMath<V>;
  using Tile = Tiles<V>;
  using Score = typename Loops::Score;
  using Slope = typename Loops::Slope;
  static constexpr int width = V::width;
  static constexpr int64_t pairs_of_tile = k_block / 2;

  // One chunk of keys of up to 192 rows; see attention.h for the order.
  static void attend_chunk(const AttentionStep& step, const AttentionRows& rows, int64_t chunk, AttentionPartial part) {
    const FlushDenormals flush;
    const AttentionSpec& spec = step.spec;
    const AttentionSequence& s = *rows.sequence;
    const int64_t group = step.group(), dim = round_up(spec.head_dim, k_block), v_step = step.v_step();
    thread_local Scratch<bf16> queries_of_thread, keys_of_thread;
    bf16* const queries = queries_of_thread.at_least(divide_up(most_attention_rows, block_rows) * tile_columns * dim);
    bf16* const keys = keys_of_thread.at_least(key_block * dim);
    Values values(step, rows);
    alignas(64) float scores[block_rows * key_block];
    alignas(64) bf16 weights[block_rows * key_block];

    const Score score(spec);
    State state;
    Range all{s.keys, 0};
    int64_t query = rows.first / group, in_group = rows.first % group;
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t head = rows.kv_head * group + in_group;
      const Range seen = visible(spec, s, query).within(chunk * chunk_keys, (chunk + 1) * chunk_keys);
      state.query[r] = static_cast<const bf16*>(step.q.at(s.first_query + query, head));
      state.keys[r] = seen, state.slope[r] = Slope(spec, head, s.past + query);
      state.top[r] = -INFINITY, state.sums[r] = W::zero();
      if (!seen.empty()) all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
      if (++in_group == group) in_group = 0, ++query;
    }
    std::memset(part.out, 0, size_t(rows.count * v_step) * sizeof(float));
    const auto queries_of = [&](int64_t t) { return queries + t / block_rows * tile_columns * dim; };
    for (int64_t t = 0; t < rows.count; t += block_rows)
      turn<tile_columns>([&](int64_t r) { return state.query[t + r]; }, std::min(block_rows, rows.count - t),
                         spec.head_dim, dim, queries_of(t));

    for (int64_t block = all.begin / key_block * key_block; block < all.end; block += key_block) {
      turn_keys(step, rows, block, dim, keys);
      values.begin(block);
      for (int64_t t = 0; t < rows.count; t += block_rows) {
        const int64_t count = std::min(block_rows, rows.count - t);
        const Seen seen(state.keys + t, count, block);
        if (seen.any.empty()) continue;
        const int64_t begin = seen.any.begin / panel_columns * panel_columns;
        const int64_t end = round_up(seen.any.end, panel_columns);
        const Pairs of_keys{keys, key_block, 0, dim / 2};
        if (rows.count <= block_rows)
          multiply<1>(count, queries, tile_columns, of_keys, begin, end, scores, key_block, true,
                      typename Few::NextKeys(s, step.k, rows.kv_head, block, spec.head_dim));
        else
          multiply<1>(count, queries_of(t), tile_columns, of_keys, begin, end, scores, key_block, true,
                      typename Tile::Nothing());
        float* const out = part.out + t * v_step;
        const auto soften = seen.whole ? PairAttentionLoops::soften<true> : PairAttentionLoops::soften<false>;
        soften(spec.slopes != nullptr, score, block, seen, t, count, state, scores, weights, out, v_step);
        values.add(seen, count, weights, out);
      }
    }
    for (int64_t r = 0; r < rows.count; ++r) part.top[r] = state.top[r], part.sum[r] = Math::sum(state.sums[r]);
  }

 private:
  static constexpr int64_t pairs_of_block = key_block / 2;
  static constexpr float most_above = 8;

  struct State {
    const bf16* query[most_attention_rows];
    Range keys[most_attention_rows];
    float top[most_attention_rows];
    W sums[most_attention_rows];
    Slope slope[most_attention_rows];
  };

  // What the rows of a tile see of a block, counted from its begin.
  struct Seen {
    Range any{0, key_block}, of_row[block_rows];
    bool whole = true, same = true;  // all rows see all; all rows see the same

    // The ends of what rows see never fall from one to the next.
    Seen(const Range* rows, int64_t count, int64_t block) {
      if (rows[count - 1].begin <= block && rows[0].end >= block + key_block) return;
      whole = false, any = {key_block, 0};
      for (int64_t r = 0; r < count; ++r) {
        const Range here = rows[r].within(block, block + key_block);
        of_row[r] = {here.begin - block, here.end - block};
        same &= of_row[r].begin == of_row[0].begin && of_row[r].end == of_row[0].end;
        if (!of_row[r].empty()) any = {std::min(any.begin, of_row[r].begin), std::max(any.end, of_row[r].end)};
      }
    }
  };

  // The products of a tile's rows, from row t of all on, with 64 keys from `block` on to weights. Step by step over all
  // rows, so that none waits for another's.
  template <bool whole>
  static void soften(bool slopes, Score score, int64_t block, const Seen& seen, int64_t t, int64_t count, State& state,
                     float* scores, bf16* weights, float* out, int64_t v_step) {
    float highest[block_rows];
    const W none = W::set(-INFINITY);
    for (int64_t r = 0; r < count; ++r) {
      float* const own = scores + r * key_block;
      W top = none;
#pragma GCC unroll 4
      for (int64_t i = 0; i < key_block; i += lanes) {
        W s = score(W::load(own + i));
        if (slopes) s = state.slope[t + r](s, block + i);
        if constexpr (!whole) s = unless_hidden(seen.of_row[r], i, s, none);
        s.store(own + i);
        top = Math::max(top, s);
      }
      highest[r] = Math::top(top);
    }
    for (int64_t r = 0; r < count; ++r)
      if (highest[r] > state.top[t + r] + most_above) rise(highest[r], t + r, state, out + r * v_step, v_step);
    for (int64_t r = 0; r < count; ++r) {
      bf16* const to = weights + r * key_block;
      const W top = W::set(state.top[t + r]);
      W sums = state.sums[t + r];
#pragma GCC unroll 4
      for (int64_t i = 0; i < key_block; i += lanes) {
        W weight = Math::exp2_of_negative(W::load(scores + r * key_block + i) - top);
        if constexpr (!whole) weight = unless_hidden(seen.of_row[r], i, weight, W::zero());  // of a NaN they are not 0
        sums = sums + weight;
#pragma GCC unroll 16
        for (int part = 0; part < W::parts; ++part) D::store_weights(to + i + part * width, weight.part[part]);
      }
      state.sums[t + r] = sums;
    }
  }
  // Brings what was summed before to a new maximum.
  static void rise(float top, int64_t r, State& state, float* out, int64_t v_step) {
    const W shrink = W::set(Math::exp2_of_negative(state.top[r] - top));
    state.top[r] = top, state.sums[r] = state.sums[r] * shrink;
    for (int64_t i = 0; i < v_step; i += lanes) (W::load(out + i) * shrink).store(out + i);
  }
  // Sixteen from key i on; of those that are not seen `hidden`.
  static W unless_hidden(Range seen, int64_t i, W x, W hidden) {
    const W at = Math::count() + W::set(float(i));
    return Math::less(at, W::set(float(seen.begin)), hidden, Math::less(at, W::set(float(seen.end)), x, hidden));
  }

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
    void pack() {
      if (is_packed_) return;
      const int64_t present = std::min(key_block, s_.keys - block_);
      const bf16* rows[key_block + 1];
      for (int64_t t = 0; t < present; ++t) rows[t] = row(t);
      rows[present] = nullptr;
      finite_ = put(rows, divide_up(present, 2), packed_), is_packed_ = true;
    }
    // Rows of keys, two for each pair, as Pairs; of each pair one may be null. Whether all numbers are finite.
    bool put(const bf16* const* rows, int64_t pairs, bf16* to) const {
      typename D::Largest largest;
      for (int64_t c = 0; c < v_step_; c += panel_columns, to += 2 * tile_elements)
        for (int64_t i = 0; i < pairs; ++i) {
          const bf16 *const even = rows[2 * i], *const odd = rows[2 * i + 1];
          bf16* const at = to + i / pairs_of_tile * (v_step_ * k_block) + i % pairs_of_tile * k_block;
          D::interleave(even ? even + c : nullptr, odd ? odd + c : nullptr, step_.spec.v_dim - c, at,
                        at + tile_elements, largest);
        }
      return largest.finite();
    }

    void add_pairs(int64_t begin, int64_t end, int64_t count, const bf16* weights, float* out) const {
      multiply<pairs_of_block>(count, weights + 2 * begin, 1, {packed_, v_step_, begin, end}, 0, v_step_, out, v_step_,
                               false, typename Tile::Nothing());
    }
    // Rows that see the same: whole pairs together, a key without its neighbour before or behind them.
    void add_seen(Range keys, int64_t count, const bf16* weights, float* out, bool in_place) const {
      const auto alone = [&](int64_t key) {
        const bf16* pair[2] = {};
        pair[key % 2] = row(key);
        put(pair, 1, one_pair_);
        multiply<pairs_of_block>(count, weights + key / 2 * 2, 1, {one_pair_, v_step_, 0, 1}, 0, v_step_, out, v_step_,
                                 false, typename Tile::Nothing());
      };
      if (keys.begin % 2) alone(keys.begin++);
      const int64_t end = keys.end / 2 * 2;
      if (keys.begin < end && in_place)
        add_in_place<>({keys.begin, end}, count, weights, out);
      else if (keys.begin < end)
        add_pairs(keys.begin / 2, end / 2, count, weights, out);
      if (keys.begin <= end && end < keys.end) alone(end);
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
      Tile::template load_sums<rows, vectors>(sum, out, v_step_, false);
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
      Tile::template store_sums<rows, vectors>(sum, out, v_step_);
    }

    const AttentionStep& step_;
    const AttentionSequence& s_;
    int64_t head_, v_step_, block_ = 0;
    bool few_, is_packed_ = false, finite_ = true;
    bf16 *packed_, *one_pair_;
  };

  // The keys of a block as Pairs of 64 columns; those of missing keys are anything.
  static void turn_keys(const AttentionStep& step, const AttentionRows& rows, int64_t block, int64_t dim, bf16* to) {
    const AttentionSequence& s = *rows.sequence;
    const int64_t present = std::min(key_block, s.keys - block);
    if (step.spec.head_dim == dim) return Few::turn_keys(s, step.k, rows.kv_head, block, present, dim, to);
    const auto row = [&](int64_t r) { return step.k.at(Few::token_at(s, block + r), rows.kv_head); };
    turn<key_block>(row, present, step.spec.head_dim, dim, to);
  }
  // Rows as pairs of dimensions, [dim / 32][column / 16][16][16], dim padded; columns behind the last row are anything.
  template <int64_t columns, class At>
  static void turn(const At& at, int64_t count, int64_t own, int64_t dim, bf16* to) {
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
    Few::turn_rows(row, count, dim, 0, to, columns * k_block);
  }

  // rows x (vectors x width) sums at c. In pairs, `a` moves by a_step for each and by row_step for each row.
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
