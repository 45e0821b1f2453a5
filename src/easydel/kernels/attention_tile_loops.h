// The products of attention's forward in the order bf16_tile by FMAs, for a vector type V: like attention_loops.h, with
// two chains per 32 dimensions or keys. Included by loops_<set>.cpp only.
#pragma once

#include <algorithm>

#include "easydel/kernels/attention_bf16_loops.h"

namespace easydel::kernels {

template <class V>
class TileAttention {
 public:
  using F = typename V::F;
  using W = Wide<V>;
  using Math = WideMath<V>;
  using Few = FewRows<V>;
  using Tile = Tiles<V>;
  using Packing = AttentionPacking<V>;
  using Weight = float;  // rounded to bf16 but kept as fp32, which FMAs read directly
  using Seen = SeenKeys<block_rows>;
  static constexpr int64_t tile_rows = block_rows;
  static constexpr bool reads_codes = false;  // values that are codes are decoded first

  TileAttention(const AttentionStep& step, const AttentionRows& rows, const bf16* const* queries)
      : step_(step),
        rows_(rows),
        dim_(step.spec.head_dim),
        v_step_(step.v_step()),
        key_pairs_(Few::pairs_of_keys(step, rows)),
        in_place_(Few::values_in_place(step, rows)) {
    thread_local Scratch<float> queries_of_thread, keys_of_thread, values_of_thread;
    queries_ = queries_of_thread.at_least(max_attention_rows * dim_);
    keys_ = keys_of_thread.at_least(key_block * dim_);
    values_ = values_of_thread.at_least(key_block * v_step_);
    for (int64_t t = 0; t < rows.count; t += block_rows) {
      const int64_t count = std::min(block_rows, rows.count - t);
      Tile::transpose([&](int64_t r) { return queries[t + r]; }, count, dim_, count, queries_ + t * dim_);
    }
  }

  void begin(int64_t block) {
    const AttentionSequence& s = *rows_.sequence;
    const int64_t present = std::min(key_block, s.keys - block);
    begin_values(block);
    if (key_pairs_)
      Few::transpose_keys(s, step_.k, rows_.kv_head, block, present, dim_, reinterpret_cast<bf16*>(keys_));
    else
      Packing::transpose_keys(s, step_.k, rows_.kv_head, block, present, dim_, keys_);
  }
  void begin_values(int64_t block) {
    const AttentionSequence& s = *rows_.sequence;
    const int64_t present = std::min(key_block, s.keys - block);
    block_ = block, finite_ = Finite::unknown, ahead_ = next_block_distance(s, step_.v, block);
    if (in_place_)
      Few::find_rows(s, step_.v, rows_.kv_head, block, present, rows_of_values_);
    else
      Packing::copy_keys(s, step_.v, rows_.kv_head, block, present, step_.spec.v_dim, v_step_, values_);
  }

  void multiply_queries(int64_t t, int64_t count, Range any, float* scores) const {
    const int64_t begin = any.begin / panel_columns * panel_columns, end = round_up(any.end, panel_columns);
    if (key_pairs_)
      return Tile::template rows_bf16<AccumulationOrder::bf16_tile, key_block>(
          count, queries_, count, reinterpret_cast<const bf16*>(keys_) + Tile::tile_of(begin), dim_, scores + begin,
          key_block, true, typename Few::NextKeys(*rows_.sequence, step_.k, rows_.kv_head, block_, dim_), end - begin);
    const auto at = [keys = keys_ + begin](int64_t d, int64_t column, int64_t) {
      return keys + d * key_block + column;
    };
    Tile::rows_tile(count, queries_ + t * dim_, count, at, 0, dim_, end - begin, scores + begin, key_block, true);
  }

  static int64_t weight_at(int64_t row, int64_t key, int64_t) { return row * key_block + key; }
  static void store_weights(float* to, F x) { V::store(to, V::rounded(x)); }  // a NaN makes the sum of weights a NaN

  // Adding a zero for an invisible key is harmless unless it meets an infinity or a NaN.
  void add_values(const Seen& seen, int64_t count, const float* weights, float* out) {
    if (!seen.same && is_finite()) return add(seen.any, count, weights, out);
    seen.for_equal_rows(count, [&](int64_t r, int64_t some, Range keys) {
      add(keys, some, weights + r * key_block, out + r * v_step_);
    });
  }

 private:
  enum class Finite : uint8_t { unknown, yes, no };

  void add(Range keys, int64_t count, const float* weights, float* out) const {
    if (!in_place_) {
      const auto at = [this](int64_t t, int64_t column, int64_t) { return values_ + t * v_step_ + column; };
      return Tile::template rows_tile<key_block>(count, weights, 1, at, keys.begin, keys.end, v_step_, out, v_step_,
                                                 false);
    }
    const auto at = [this](int64_t t, int64_t column, int64_t columns) {
      const bf16* const from = rows_of_values_[t] + column;
      for (int64_t i = 0; i < columns; i += k_block) V::prefetch(from + ahead_ + i);
      return from;
    };
    Tile::template rows_tile<key_block>(count, weights, 1, at, keys.begin, keys.end, step_.spec.v_dim, out, v_step_,
                                        false);
  }

  // Whether all values of the block are finite; needed if rows see different keys.
  bool is_finite() {
    if (finite_ == Finite::unknown) {
      const int64_t present = std::min(key_block, rows_.sequence->keys - block_);
      const auto all = [&](const auto& row, int64_t columns) {
        W products = W::zero();  // products with 0: a NaN if a value is not finite
        for (int64_t t = 0; t < present; ++t)
          for (int64_t c = 0; c < columns; c += lanes) products = Math::fma(W::load(row(t) + c), W::zero(), products);
        return Math::sum(products) == 0;
      };
      const bool yes = in_place_ ? all([this](int64_t t) { return rows_of_values_[t]; }, step_.spec.v_dim)
                                 : all([this](int64_t t) { return values_ + t * v_step_; }, v_step_);
      finite_ = yes ? Finite::yes : Finite::no;
    }
    return finite_ == Finite::yes;
  }

  const AttentionStep& step_;
  const AttentionRows& rows_;
  int64_t dim_, v_step_, block_ = 0, ahead_ = 0;
  bool key_pairs_, in_place_;
  Finite finite_ = Finite::unknown;
  float *queries_, *keys_, *values_;
  const bf16* rows_of_values_[key_block];
};

}  // namespace easydel::kernels
