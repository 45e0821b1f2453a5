// The inner loops of attention's forward, for a vector type V. Included by loops_<set>.cpp only.
#pragma once

#include <cmath>

#include "easydel/kernels/attention_code_loops.h"
#include "easydel/kernels/attention_few_loops.h"
#include "easydel/kernels/attention_step.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/tiles.h"
#include "easydel/kernels/wide.h"

namespace easydel::kernels {

// Rows of keys, values or queries in the layout of tiles.
template <class V>
struct AttentionPacking {
  using Tile = Tiles<V>;
  using W = Wide<V>;

  // at(r) returns row r as an untyped pointer: to[i * step + r].
  template <class At>
  static void transpose(DType dtype, const At& at, int64_t rows, int64_t dim, int64_t step, float* to) {
    if (dtype == DType::f32)
      Tile::transpose([&](int64_t r) { return static_cast<const float*>(at(r)); }, rows, dim, step, to);
    else
      Tile::transpose([&](int64_t r) { return static_cast<const bf16*>(at(r)); }, rows, dim, step, to);
  }

  // Rows of `step` floats (a multiple of 32), padded with zeros.
  template <class At>
  static void copy(DType dtype, const At& at, int64_t rows, int64_t dim, int64_t step, float* to) {
    for (int64_t r = 0; r < rows; ++r, to += step) {
      const void* const row = at(r);
      int64_t i = 0;
      for (; i < dim; i += lanes)
        (dtype == DType::f32 ? W::load(static_cast<const float*>(row) + i, dim - i)
                             : W::load(static_cast<const bf16*>(row) + i, dim - i))
            .store(to + i);
      for (; i < step; i += lanes) W::zero().store(to + i);
    }
  }

  // Keys [begin, begin + count) of one kv head, transposed into [dim][64] or copied into [64][step]; missing keys are
  // 0.
  static void transpose_keys(const AttentionSequence& s, const Heads& k, int64_t head, int64_t begin, int64_t count,
                             int64_t dim, float* to) {
    if (count < key_block) std::memset(to, 0, size_t(dim * key_block) * sizeof(float));
    const void* rows[key_block];
    FewRows<V>::find_rows(s, k, head, begin, count, rows);
    transpose(
        k.dtype, [&](int64_t r) { return rows[r]; }, count, dim, key_block, to);
  }
  static void copy_keys(const AttentionSequence& s, const Heads& k, int64_t head, int64_t begin, int64_t count,
                        int64_t dim, int64_t step, float* to) {
    if (count < key_block) std::memset(to, 0, size_t(key_block * step) * sizeof(float));
    const void* rows[key_block];
    FewRows<V>::find_rows(s, k, head, begin, count, rows);
    copy(
        k.dtype, [&](int64_t r) { return rows[r]; }, count, dim, step, to);
  }
};

template <class V>
struct AttentionLoops {
  using W = Wide<V>;
  using Math = WideMath<V>;
  using Tile = Tiles<V>;
  using Packing = AttentionPacking<V>;

  static constexpr float log2_e = 1.44269504f, ln_2 = 0.693147181f;

  // From sixteen products q k to scores in powers of two.
  struct Score {
    W scale, to_log2;
    bool capped;
    explicit Score(const AttentionSpec& spec)
        : scale(W::set(spec.softcap > 0 ? spec.scale / spec.softcap : spec.scale * log2_e)),
          to_log2(W::set(spec.softcap * log2_e)),
          capped(spec.softcap > 0) {}
    W operator()(W product) const {
      const W scaled = product * scale;
      return capped ? Math::tanh(scaled) * to_log2 : scaled;
    }
  };

  // The bias that ALiBi subtracts from the scores of one row, or adds to them by key.
  struct Slope {
    float slope = 0;       // in powers of two per position; by key: rounded to bf16
    float of_rounded = 0;  // by key: what makes powers of two of a rounded bias
    int64_t position = 0;
    bool by_key = false;

    Slope() = default;
    Slope(const AttentionSpec& spec, int64_t head, int64_t at) : position(at) {
      if (!spec.slopes) return;
      by_key = spec.rounded_slopes, of_rounded = spec.scale * log2_e;
      slope = by_key ? widen(narrow(spec.slopes[head])) : spec.slopes[head] * log2_e;
    }
    // Sixteen keys starting at `key`.
    W operator()(W score, int64_t key) const {
      if (slope == 0) return score;
      if (by_key) {
        const W place = Math::rounded(Math::count() + W::set(float(key)));
        return Math::fma(Math::rounded(W::set(slope) * place), W::set(of_rounded), score);
      }
      return Math::fma(Math::abs(Math::count() + W::set(float(key - position))), W::set(-slope), score);
    }
  };

  struct Row {
    Range keys;
    float top;
    W sums;
    Slope slope;
  };

  // One chunk of keys of up to 192 rows; see attention.h for the order. Blocks: PlainBlocks, CodedBlocks or
  // GroupedBlocks.
  template <class Blocks>
  static void attend_chunk(const AttentionStep& given_step, const AttentionRows& given_rows, int64_t chunk,
                           AttentionPartial part) {
    Blocks blocks(given_step, given_rows);
    const AttentionStep& step = blocks.step();
    const AttentionRows& rows = blocks.rows();
    const AttentionSpec& spec = step.spec;
    const AttentionSequence& s = *rows.sequence;
    const int64_t group = step.group(), dim = spec.head_dim, v_step = step.v_step();
    const Score score(spec);
    thread_local Scratch<float> queries_of_thread, keys_of_thread, values_of_thread;
    float* const queries = queries_of_thread.at_least(max_attention_rows * dim);
    float* const keys = keys_of_thread.at_least(key_block * dim);
    float* const values = values_of_thread.at_least(key_block * v_step);
    const bool key_pairs = FewRows<V>::pairs_of_keys(step, rows), in_place = FewRows<V>::values_in_place(step, rows);
    bf16* const pairs = reinterpret_cast<bf16*>(keys);
    alignas(64) float scores[block_rows * key_block];
    alignas(64) float weights[block_rows * key_block];

    Row state[max_attention_rows];
    const void* query_of[max_attention_rows];
    Range all{s.keys, 0};
    for (int64_t r = 0; r < rows.count; ++r) {
      const Range keys_of_row =
          visible(spec, s, (rows.first + r) / group).within(chunk * chunk_keys, (chunk + 1) * chunk_keys);
      const int64_t query = (rows.first + r) / group, head = rows.kv_head * group + (rows.first + r) % group;
      state[r] = {keys_of_row, -INFINITY, W::zero(), Slope(spec, head, s.past + query)};
      query_of[r] = blocks.query(r, step.q.at(s.first_query + query, head));
      if (!keys_of_row.empty()) all = {std::min(all.begin, keys_of_row.begin), std::max(all.end, keys_of_row.end)};
    }
    std::memset(part.out, 0, size_t(rows.count * v_step) * sizeof(float));
    for (int64_t t = 0; t < rows.count; t += block_rows) {
      const int64_t count = std::min(block_rows, rows.count - t);
      Packing::transpose(
          blocks.query_dtype(), [&](int64_t r) { return query_of[t + r]; }, count, dim, count, queries + t * dim);
    }

    for (int64_t block = all.begin / key_block * key_block; block < all.end; block += key_block) {
      blocks.begin(block);
      const int64_t present = std::min(key_block, s.keys - block);
      if (key_pairs)
        FewRows<V>::transpose_keys(s, step.k, rows.kv_head, block, present, dim, pairs);
      else
        Packing::transpose_keys(s, step.k, rows.kv_head, block, present, dim, keys);
      if (!in_place) Packing::copy_keys(s, step.v, rows.kv_head, block, present, spec.v_dim, v_step, values);
      for (int64_t t = 0; t < rows.count; t += block_rows) {
        const int64_t count = std::min(block_rows, rows.count - t);
        Range any{key_block, 0}, common{0, key_block}, of_row[block_rows];
        for (int64_t r = 0; r < count; ++r) {
          const Range here = state[t + r].keys.within(block, block + key_block);
          of_row[r] = {here.begin - block, here.end - block};
          if (!of_row[r].empty()) any = {std::min(any.begin, of_row[r].begin), std::max(any.end, of_row[r].end)};
          common = {std::max(common.begin, of_row[r].begin), std::min(common.end, of_row[r].end)};
        }
        if (any.empty()) continue;
        const int64_t begin = any.begin / panel_columns * panel_columns, end = round_up(any.end, panel_columns);
        if (key_pairs)
          Tile::template rows_bf16<AccumulationOrder::fp32_chain, key_block>(
              count, queries, count, pairs + Tile::tile_of(begin), dim, scores + begin, key_block, true,
              typename FewRows<V>::NextKeys(s, step.k, rows.kv_head, block, dim), end - begin);
        else
          Tile::rows_f32(count, queries + t * dim, count, {keys + begin, key_block, end - begin}, dim, scores + begin,
                         key_block, true);
        float* const out = part.out + t * v_step;
        for (int64_t r = 0; r < count; ++r)
          if (!of_row[r].empty())
            soften<Blocks::coded>(score, block, scores + r * key_block, blocks.scales(t + r), of_row[r], state[t + r],
                                  weights + r * key_block, out + r * v_step, v_step);
        const auto sum = [&](int64_t r, int64_t some, int64_t begin, int64_t end) {
          if (begin < end && in_place)
            FewRows<V>::add_values(s, step.v, rows.kv_head, block, {begin, end}, some, weights + r * key_block,
                                   spec.v_dim, out + r * v_step, v_step);
          else if (begin < end)
            Tile::template rows_f32<key_block>(some, weights + r * key_block + begin, 1,
                                               {values + begin * v_step, v_step, v_step}, end - begin, out + r * v_step,
                                               v_step, false);
        };
        // Keys that all rows of the tile see are processed together, a row's other keys before and after them, so that
        // each row's keys ascend.
        if (common.empty()) {
          for (int64_t r = 0; r < count; ++r) sum(r, 1, of_row[r].begin, of_row[r].end);
          continue;
        }
        for (int64_t r = 0; r < count; ++r) sum(r, 1, of_row[r].begin, common.begin);
        sum(0, count, common.begin, common.end);
        for (int64_t r = 0; r < count; ++r) sum(r, 1, common.end, of_row[r].end);
      }
    }
    for (int64_t r = 0; r < rows.count; ++r) part.top[r] = state[r].top, part.sum[r] = Math::sum(state[r].sums);
  }

  // Turns the 64 products of one row with the keys at `block` into weights for the visible `keys` (relative to the
  // block), and rescales earlier sums to the new maximum.
  template <bool coded>
  static void soften(const Score& score, int64_t block, const float* products, const BlockScales& scales, Range keys,
                     Row& row, float* weights, float* out, int64_t v_step) {
    constexpr int64_t vectors = key_block / lanes;
    W s[vectors], top = W::set(-INFINITY);
    const bool whole = keys.begin == 0 && keys.end == key_block;
    const W begin = W::set(float(keys.begin)), end = W::set(float(keys.end)), none = W::set(-INFINITY);
#pragma GCC unroll 4
    for (int64_t i = 0; i < vectors; ++i) {
      W product = W::load(products + i * lanes);
      if constexpr (coded) product = product * W::load(scales.keys + i * lanes) * W::set(scales.query);
      s[i] = row.slope(score(product), block + i * lanes);
      if (!whole) {
        const W at = Math::count() + W::set(float(i * lanes));
        s[i] = Math::less(at, begin, none, Math::less(at, end, s[i], none));
      }
      top = Math::max(top, s[i]);
    }
    const float before = row.top, highest = Math::top(top), now = before > highest ? before : highest;
    if (now != before) {
      const float shrink = Math::exp2_of_negative(before - now);
      row.top = now, row.sums = row.sums * W::set(shrink);
      for (int64_t i = 0; i < v_step; i += lanes) (W::load(out + i) * W::set(shrink)).store(out + i);
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < vectors; ++i) {
      const W weight = Math::exp2_of_negative(s[i] - W::set(now));
      row.sums = row.sums + weight;
      (coded ? weight * W::load(scales.values + i * lanes) : weight).store(weights + i * lanes);
    }
  }

  // `part` covers keys after those of `all`.
  static void merge(const AttentionStep& step, int64_t rows, AttentionPartial all, AttentionPartial part) {
    for (int64_t r = 0; r < rows; ++r) {
      if (part.sum[r] == 0) continue;  // no visible key
      const bool first = all.sum[r] == 0;
      const float top = all.top[r] > part.top[r] ? all.top[r] : part.top[r];
      const float a = first ? 0 : Math::exp2_of_negative(all.top[r] - top),
                  b = Math::exp2_of_negative(part.top[r] - top);
      all.sum[r] = first ? part.sum[r] : std::fma(part.sum[r], b, all.sum[r] * a);
      all.top[r] = top;
      for (int64_t i = r * step.v_step(); i < (r + 1) * step.v_step(); i += lanes) {
        const W more = W::load(part.out + i);
        (first ? more : Math::fma(more, W::set(b), W::load(all.out + i) * W::set(a))).store(all.out + i);
      }
    }
  }

  static void finish(const AttentionStep& step, const AttentionRows& rows, AttentionPartial all) {
    const AttentionSequence& s = *rows.sequence;
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t i = rows.first + r, token = s.first_query + i / step.group();
      const int64_t head = rows.kv_head * step.group() + i % step.group();
      float sum = all.sum[r], top = all.top[r], shrink = 1;
      if (step.spec.sinks) {
        const float sink = step.spec.sinks[head] * log2_e;
        if (sink > top) shrink = sum == 0 ? 0 : Math::exp2_of_negative(top - sink), top = sink;
        sum = std::fma(sum, shrink, Math::exp2_of_negative(sink - top));
      }
      const W factor = W::set(sum == 0 ? 0 : shrink / sum);
      const bool one_nan = step.order != AccumulationOrder::fp32_chain || is_coded(step.k.dtype);
      if (step.lse) {
        float& lse = step.lse[token * step.spec.heads + head];
        lse = sum == 0 ? -INFINITY : float(top * double(ln_2) + std::log(double(sum)));
        if (one_nan && std::isnan(lse)) lse = NAN;
      }
      void* const to = step.out.at(token, head);
      for (int64_t d = 0; d < step.spec.v_dim; d += lanes) {
        W y = W::load(all.out + r * step.v_step() + d) * factor;
        if (one_nan) y = Math::one_nan(y + W::zero());
        if (step.out.dtype == DType::f32)
          y.store(static_cast<float*>(to) + d, step.spec.v_dim - d);
        else
          y.store(static_cast<bf16*>(to) + d, step.spec.v_dim - d);
      }
    }
  }
};

}  // namespace easydel::kernels
