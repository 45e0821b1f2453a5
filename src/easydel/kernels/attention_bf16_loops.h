// What the bf16 orders of attention's forward share, for a vector type V: the walk over blocks of keys, and the
// softmax. P provides the products of an order: attention_pair_loops.h, attention_tile_loops.h, amx_attention.h.
// Included by loops_<set>.cpp only.
#pragma once

#include <algorithm>

#include "easydel/kernels/attention_loops.h"
#include "easydel/kernels/isa.h"

namespace easydel::kernels {

// The keys of a block that each of up to `max_rows` rows sees, relative to the block's begin.
template <int64_t max_rows>
struct SeenKeys {
  Range any{0, key_block}, of_row[max_rows];
  bool whole = true, same = true;  // all rows see all; all rows see the same

  // Begins and ends never decrease from one row to the next.
  SeenKeys(const Range* rows, int64_t count, int64_t block) {
    if (rows[count - 1].begin <= block && rows[0].end >= block + key_block) return;
    whole = false, any = {key_block, 0};
    for (int64_t r = 0; r < count; ++r) {
      const Range here = rows[r].within(block, block + key_block);
      of_row[r] = {here.begin - block, here.end - block};
      same &= of_row[r].begin == of_row[0].begin && of_row[r].end == of_row[0].end;
      if (!of_row[r].empty()) any = {std::min(any.begin, of_row[r].begin), std::max(any.end, of_row[r].end)};
    }
  }

  // Calls work(r, count, keys) for runs of rows that see the same keys; skips rows that see none.
  template <class Work>
  void for_equal_rows(int64_t count, const Work& work) const {
    if (same) return work(0, count, any);
    for (int64_t r = 0, end; r < count; r = end) {
      for (end = r + 1; end < count && of_row[end].begin == of_row[r].begin && of_row[end].end == of_row[r].end;) ++end;
      if (!of_row[r].empty()) work(r, end - r, of_row[r]);
    }
  }
};

// P takes P::tile_rows rows at a time and has
//   P(step, rows, queries)                  queries: pointers to the queries of the rows
//   begin(block)                            the following calls are about the keys from position `block`
//   multiply_queries(t, count, any, to)     [count][64] products of rows from t with at least the keys `any`
//   Weight, weight_at(r, key, count)        layout of the rounded weights of `count` rows
//   store_weights(to, F)                    rounds and stores some weights
//   add_values(seen, count, weights, out)   accumulates into out [count][v_step]
template <class V, class P>
struct Bf16AttentionLoops {
  using F = typename V::F;
  using Loops = AttentionLoops<V>;
  using W = Wide<V>;
  using Math = WideMath<V>;
  using Score = typename Loops::Score;
  using Slope = typename Loops::Slope;
  using Seen = SeenKeys<P::tile_rows>;
  static constexpr int width = V::width;

  // One chunk of keys of up to 192 rows; see attention.h for the orders.
  static void attend_chunk(const AttentionStep& step, const AttentionRows& rows, int64_t chunk, AttentionPartial part) {
    attend<PlainBlocks<V, bf16>>(step, rows, chunk, part);
  }
  // The same if keys and values are codes.
  static void attend_coded_chunk(const AttentionStep& step, const AttentionRows& rows, int64_t chunk,
                                 AttentionPartial part) {
    attend<CodedBlocks<V, bf16>>(step, rows, chunk, part);
  }
  static void attend_grouped_chunk(const AttentionStep& step, const AttentionRows& rows, int64_t chunk,
                                   AttentionPartial part) {
    attend<GroupedBlocks<V, bf16>>(step, rows, chunk, part);
  }
  template <class Blocks>
  static void attend(const AttentionStep& given_step, const AttentionRows& given_rows, int64_t chunk,
                     AttentionPartial part) {
    const FlushDenormals flush;
    Blocks blocks(given_step, given_rows);
    const AttentionStep& step = blocks.step();
    const AttentionRows& rows = blocks.rows();
    const AttentionSpec& spec = step.spec;
    const AttentionSequence& s = *rows.sequence;
    const int64_t group = step.group(), v_step = step.v_step();
    alignas(64) float scores[P::tile_rows * key_block];
    alignas(64) typename P::Weight weights[P::tile_rows * key_block];

    const Score score(spec);
    State state;
    const bf16* queries[max_attention_rows];
    Range all{s.keys, 0};
    int64_t query = rows.first / group, in_group = rows.first % group;
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t head = rows.kv_head * group + in_group;
      const Range seen = visible(spec, s, query).within(chunk * chunk_keys, (chunk + 1) * chunk_keys);
      queries[r] = static_cast<const bf16*>(blocks.query(r, step.q.at(s.first_query + query, head)));
      state.keys[r] = seen, state.slope[r] = Slope(spec, head, s.past + query);
      state.top[r] = -INFINITY, state.sums[r] = W::zero();
      if (!seen.empty()) all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
      if (++in_group == group) in_group = 0, ++query;
    }
    std::memset(part.out, 0, size_t(rows.count * v_step) * sizeof(float));
    P products(step, rows, queries);
    if constexpr (requires { products.set_blocks(blocks); }) products.set_blocks(blocks);

    for (int64_t block = all.begin / key_block * key_block; block < all.end; block += key_block) {
      blocks.begin(block);
      products.begin(block);
      for (int64_t t = 0; t < rows.count; t += P::tile_rows) {
        const int64_t count = std::min(P::tile_rows, rows.count - t);
        const Seen seen(state.keys + t, count, block);
        if (seen.any.empty()) continue;
        products.multiply_queries(t, count, seen.any, scores);
        float* const out = part.out + t * v_step;
        const auto soften =
            seen.whole ? Bf16AttentionLoops::soften<true, Blocks> : Bf16AttentionLoops::soften<false, Blocks>;
        soften(spec.slopes != nullptr, score, block, blocks, seen, t, count, state, scores, weights, out, v_step);
        products.add_values(seen, count, weights, out);
      }
    }
    for (int64_t r = 0; r < rows.count; ++r) part.top[r] = state.top[r], part.sum[r] = Math::sum(state.sums[r]);
  }

 private:
  static constexpr float max_score_rise = 8;

  struct State {
    Range keys[max_attention_rows];
    float top[max_attention_rows];
    W sums[max_attention_rows];
    Slope slope[max_attention_rows];
  };

  // Turns the products of a tile's rows (starting at row t) with the 64 keys at `block` into weights. Each step goes
  // over all rows, so that no row waits for its own previous step.
  template <bool whole, class Blocks>
  static void soften(bool slopes, Score score, int64_t block, const Blocks& blocks, const Seen& seen, int64_t t,
                     int64_t count, State& state, float* scores, typename P::Weight* weights, float* out,
                     int64_t v_step) {
    float highest[P::tile_rows];
    const W none = W::set(-INFINITY);
    for (int64_t r = 0; r < count; ++r) {
      float* const own = scores + r * key_block;
      W top = none;
#pragma GCC unroll 4
      for (int64_t i = 0; i < key_block; i += lanes) {
        W product = W::load(own + i);
        if constexpr (Blocks::coded) {
          const BlockScales scales = blocks.scales(t + r);
          product = product * W::load(scales.keys + i) * W::set(scales.query);
        }
        W s = score(product);
        if (slopes) s = state.slope[t + r](s, block + i);
        if constexpr (!whole) s = if_seen(seen.of_row[r], i, s, none);
        s.store(own + i);
        top = Math::max(top, s);
      }
      highest[r] = Math::top(top);
    }
    for (int64_t r = 0; r < count; ++r)
      if (highest[r] > state.top[t + r] + max_score_rise) rise(highest[r], t + r, state, out + r * v_step, v_step);
    for (int64_t r = 0; r < count; ++r) {
      const W top = W::set(state.top[t + r]);
      W sums = state.sums[t + r];
#pragma GCC unroll 4
      for (int64_t i = 0; i < key_block; i += lanes) {
        W weight = Math::exp2_of_negative(W::load(scores + r * key_block + i) - top);
        if constexpr (!whole) weight = if_seen(seen.of_row[r], i, weight, W::zero());  // a NaN would not become 0
        sums = sums + weight;
        if constexpr (Blocks::coded) {
          weight = weight * W::load(blocks.scales(t + r).values + i);
          if constexpr (!whole) weight = if_seen(seen.of_row[r], i, weight, W::zero());  // its scale may be a NaN
        }
#pragma GCC unroll 16
        for (int part = 0; part < W::parts; ++part)
          P::store_weights(weights + P::weight_at(r, i, count) + part * width, weight.part[part]);
      }
      state.sums[t + r] = sums;
    }
  }
  // Rescales earlier sums to a new maximum.
  static void rise(float top, int64_t r, State& state, float* out, int64_t v_step) {
    const W shrink = W::set(Math::exp2_of_negative(state.top[r] - top));
    state.top[r] = top, state.sums[r] = state.sums[r] * shrink;
    for (int64_t i = 0; i < v_step; i += lanes) (W::load(out + i) * shrink).store(out + i);
  }
  // Sixteen keys starting at i; others become `otherwise`.
  static W if_seen(Range seen, int64_t i, W x, W otherwise) {
    const W at = Math::count() + W::set(float(i));
    return Math::less(at, W::set(float(seen.begin)), otherwise, Math::less(at, W::set(float(seen.end)), x, otherwise));
  }
};

}  // namespace easydel::kernels
