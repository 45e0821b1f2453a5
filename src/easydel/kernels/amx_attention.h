// The products of attention's forward by tiles, in the order bf16_tile: 32 rows at a time; keys and values are packed
// once for all rows of a task. Included by loops_amx.cpp only.
#pragma once

#include "easydel/kernels/amx_loops.h"
#include "easydel/kernels/attention_bf16_loops.h"
#include "easydel/kernels/attention_pairs.h"
#include "easydel/kernels/simd_avx512_bf16.h"

namespace easydel::kernels {

class AmxAttention {
 public:
  using V = Avx512;
  using Few = FewRows<V>;
  using Packing = AttentionPairs<V, Avx512Pairs>;
  using Weight = bf16;
  static constexpr int64_t tile_rows = kernels::tile_rows;
  using Seen = SeenKeys<tile_rows>;

  // With fewer rows (decoding), memory is the limit, and FMAs read keys and values in the best order for it; packing
  // for tiles would add two sweeps over them.
  static constexpr int64_t fewest_rows = block_rows;

  AmxAttention(const AttentionStep& step, const AttentionRows& rows, const bf16* const* queries)
      : step_(step),
        rows_(rows),
        dim_(round_up(step.spec.head_dim, k_block)),
        v_step_(step.v_step()),
        registers_(AmxLoops::line) {
    thread_local Scratch<bf16> of_thread;
    queries_ = of_thread.at_least(max_attention_rows * dim_ + key_block * (dim_ + 2 * v_step_));
    keys_ = queries_ + max_attention_rows * dim_;
    values_ = keys_ + key_block * dim_, some_values_ = values_ + key_block * v_step_;
    for (int64_t t = 0; t < rows.count; t += tile_rows)
      AmxLoops::pack_rows([&](int64_t r) { return queries[t + r]; }, std::min(tile_rows, rows.count - t),
                          step.spec.head_dim, queries_ + t * dim_);
  }

  void begin(int64_t block) {
    const AttentionSequence& s = *rows_.sequence;
    block_ = block, present_ = std::min(key_block, s.keys - block);
    const bf16* keys[key_block];
    Few::find_rows(s, step_.k, rows_.kv_head, block, present_, keys);
    for (int64_t first = 0; first < present_; first += panel_columns)
      Packing::transpose<panel_columns>([&](int64_t r) { return keys[first + r]; },
                                        std::min(panel_columns, present_ - first), step_.spec.head_dim, dim_,
                                        keys_ + first * dim_);
    Few::find_rows(s, step_.v, rows_.kv_head, block, present_, rows_of_values_);
    finite_ = pack_values({0, present_}, values_);
  }

  void multiply_queries(int64_t t, int64_t count, Range any, float* scores) {
    LinesAhead ahead = t == 0 ? next_keys(any) : LinesAhead();
    for (int64_t first = any.begin / panel_columns * panel_columns; first < any.end; first += panel_columns)
      sum_tiles<Bf16Tiles>(registers_, queries_ + t * dim_, count, keys_ + first * dim_, dim_ / k_block,
                           {scores + first, true, key_block * int64_t(sizeof(float))}, ahead);
  }

  static int64_t weight_at(int64_t row, int64_t key, int64_t count) {
    return key / k_block * (count * k_block) + row * k_block + key % k_block;
  }
  static void store_weights(bf16* to, __m512 x) { Avx512Pairs::store_weights(to, x); }

  // Adding a zero for an invisible key is harmless unless it meets an infinity or a NaN.
  void add_values(const Seen& seen, int64_t count, const bf16* weights, float* out) {
    if (finite_ || seen.whole) return add(values_, seen.any, 0, count, count, weights, out);
    seen.for_equal_rows(count, [&](int64_t r, int64_t some, Range keys) {
      pack_values(keys, some_values_);
      add(some_values_, keys, r, some, count, weights, out + r * v_step_);
    });
  }

 private:
  static constexpr int64_t blocks = key_block / k_block, block_elements = 2 * tile_elements;

  // Packs the block's values of `keys` (zeros for the others) as panels of two blocks of 32 keys. Returns whether all
  // are finite.
  bool pack_values(Range keys, bf16* to) const {
    const bf16* rows[key_block];
    for (int64_t t = 0; t < key_block; ++t) rows[t] = t >= keys.begin && t < keys.end ? rows_of_values_[t] : nullptr;
    const int64_t pairs = round_up(keys.end, k_block) / 2;
    return Packing::interleave(rows, pairs, step_.spec.v_dim, v_step_, {blocks * block_elements, block_elements}, to,
                               next_block_distance(*rows_.sequence, step_.v, block_));
  }

  // Adds rows [r, r + some) of the `count` rows of weights to out [some][v_step].
  void add(const bf16* values, Range keys, int64_t r, int64_t some, int64_t count, const bf16* weights, float* out) {
    const int64_t begin = keys.begin / k_block, end = divide_up(keys.end, k_block);
    const int64_t blocks_per_call = some == count ? end - begin : 1;  // blocks of all rows are contiguous
    LinesAhead nothing;
    for (int64_t p = 0; p < v_step_ / panel_columns; ++p)
      for (int64_t b = begin; b < end; b += blocks_per_call)
        sum_tiles<Bf16Tiles>(registers_, weights + weight_at(r, b * k_block, count), some,
                             values + (p * blocks + b) * block_elements, blocks_per_call,
                             {out + p * panel_columns, false, v_step_ * int64_t(sizeof(float))}, nothing);
  }

  // Prefetches the keys after this block evenly during the first products with this one.
  LinesAhead next_keys(Range any) const {
    const typename Few::NextKeys keys(*rows_.sequence, step_.k, rows_.kv_head, block_, step_.spec.head_dim);
    const int64_t steps = (divide_up(any.end, panel_columns) - any.begin / panel_columns) * (dim_ / k_block);
    return {reinterpret_cast<const char*>(keys.next), divide_up(keys.end - keys.next, k_block * steps)};
  }

  const AttentionStep& step_;
  const AttentionRows& rows_;
  int64_t dim_, v_step_, block_ = 0, present_ = 0;
  bool finite_ = true;
  bf16 *queries_, *keys_, *values_, *some_values_;
  const bf16* rows_of_values_[key_block];
  TileRegisters registers_;
};

}  // namespace easydel::kernels
