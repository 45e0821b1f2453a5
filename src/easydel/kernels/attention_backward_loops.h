// The inner loops of attention's backward (after arXiv 2205.14135, appendix B), for a vector type V. Included by
// loops_<set>.cpp only.
#pragma once

#include <cmath>
#include <utility>

#include "easydel/kernels/attention_loops.h"

namespace easydel::kernels {

template <class V>
struct AttentionBackwardLoops {
  using W = Wide<V>;
  using Math = WideMath<V>;
  using Tile = Tiles<V>;
  using Packing = AttentionPacking<V>;
  using Slope = typename AttentionLoops<V>::Slope;
  static constexpr float log2_e = AttentionLoops<V>::log2_e;

  static void dots(const AttentionSpec& spec, const AttentionGradient& g, int64_t token, float* to) {
    for (int64_t h = 0; h < spec.heads; ++h) {
      W sum = W::zero();
      for (int64_t i = 0; i < spec.v_dim; i += lanes)
        sum = Math::fma(read(g.out, token, h, i, spec.v_dim - i), read(g.dout, token, h, i, spec.v_dim - i), sum);
      to[h] = Math::sum(sum);
    }
  }

  static void attend_backward(const AttentionBackwardStep& step, const AttentionBackwardPart& part) {
    const AttentionSpec& spec = step.spec;
    const AttentionGradient& g = step.gradient;
    const AttentionSequence& s = *part.rows.sequence;
    const int64_t dim = spec.head_dim, v_dim = spec.v_dim, head = part.rows.kv_head, rows = part.rows.count;
    const int64_t k_step = round_up(dim, panel_columns), v_step = round_up(v_dim, panel_columns);
    thread_local Scratch<float> rows_of_thread, keys_of_thread;
    float* at = rows_of_thread.at_least(rows * (2 * k_step + v_step + dim + v_dim));
    const auto take = [&](int64_t floats) { return std::exchange(at, at + floats); };
    float* const q_rows = take(rows * k_step);
    float* const dout_rows = take(rows * v_step);
    float* const dq = take(rows * k_step);
    float* const q_transposed = take(rows * dim);
    float* const dout_transposed = take(rows * v_dim);
    at = keys_of_thread.at_least(key_block * (dim + v_dim + 2 * k_step + v_step));
    float* const k_transposed = take(key_block * dim);
    float* const v_transposed = take(key_block * v_dim);
    float* const k_rows = take(key_block * k_step);
    float* const dk = take(key_block * k_step);
    float* const dv = take(key_block * v_step);

    const auto q_row = [&](int64_t r) { return g.q.at(token(step, part, r), head_of(step, part, r)); };
    const auto dout_row = [&](int64_t r) { return g.dout.at(token(step, part, r), head_of(step, part, r)); };
    for (int64_t t = 0; t < rows; t += block_rows) {
      const int64_t count = std::min(block_rows, rows - t);
      Packing::transpose(
          g.q.dtype, [&](int64_t r) { return q_row(t + r); }, count, dim, count, q_transposed + t * dim);
      Packing::transpose(
          g.dout.dtype, [&](int64_t r) { return dout_row(t + r); }, count, v_dim, count, dout_transposed + t * v_dim);
    }
    if (part.want_dkv) {
      Packing::copy(g.q.dtype, q_row, rows, dim, k_step, q_rows);
      Packing::copy(g.dout.dtype, dout_row, rows, v_dim, v_step, dout_rows);
    }
    if (part.want_dq) std::memset(dq, 0, size_t(rows * k_step) * sizeof(float));

    alignas(64) float weights[backward_rows * key_block], dscores[backward_rows * key_block];
    alignas(64) float scores[block_rows * key_block], dweights[block_rows * key_block];
    for (int64_t block = part.keys.begin; block < part.keys.end; block += key_block) {
      const int64_t present = std::min(key_block, part.keys.end - block);
      Packing::transpose_keys(s, g.k, head, block, present, dim, k_transposed);
      Packing::transpose_keys(s, g.v, head, block, present, v_dim, v_transposed);
      if (part.want_dq) Packing::copy_keys(s, g.k, head, block, present, dim, k_step, k_rows);
      if (part.want_dkv) {
        std::memset(dk, 0, size_t(key_block * k_step) * sizeof(float));
        std::memset(dv, 0, size_t(key_block * v_step) * sizeof(float));
      }
      for (int64_t first = 0; first < rows; first += backward_rows) {
        Range seeing{backward_rows, 0};  // rows of this group that see anything of the block, rounded to whole tiles
        for (int64_t t = first; t < std::min(first + backward_rows, rows); t += block_rows) {
          const int64_t count = std::min(block_rows, rows - t);
          Range of_row[block_rows];
          bool any = false;
          for (int64_t r = 0; r < count; ++r) {
            const Range here =
                visible(spec, s, (part.rows.first + t + r) / step.group()).within(block, block + present);
            of_row[r] = {here.begin - block, here.end - block};
            any |= !here.empty();
          }
          if (!any) continue;
          seeing = {std::min(seeing.begin, t - first), t - first + count};
          Tile::rows_f32(count, q_transposed + t * dim, count, {k_transposed, key_block, key_block}, dim, scores,
                         key_block, true);
          Tile::rows_f32(count, dout_transposed + t * v_dim, count, {v_transposed, key_block, key_block}, v_dim,
                         dweights, key_block, true);
          float* const dscores_of_tile = dscores + (t - first) * key_block;
          for (int64_t r = 0; r < count; ++r) {
            const int64_t own_head = head_of(step, part, t + r), row = token(step, part, t + r) * spec.heads + own_head;
            const Slope slope(spec, own_head, s.past + token(step, part, t + r) - s.first_query);
            differentiate(spec, slope, block, scores + r * key_block, dweights + r * key_block, of_row[r], g.lse[row],
                          step.dots[row], weights + (t - first + r) * key_block, dscores_of_tile + r * key_block);
          }
          if (part.want_dq)
            Tile::template rows_f32<key_block>(count, dscores_of_tile, 1, {k_rows, k_step, k_step}, key_block,
                                               dq + t * k_step, k_step, false);
        }
        if (seeing.empty() || !part.want_dkv) continue;
        const int64_t k = seeing.end - seeing.begin, from = first + seeing.begin;
        Tile::rows_f32(present, weights + seeing.begin * key_block, key_block,
                       {dout_rows + from * v_step, v_step, v_step}, k, dv, v_step, false);
        Tile::rows_f32(present, dscores + seeing.begin * key_block, key_block, {q_rows + from * k_step, k_step, k_step},
                       k, dk, k_step, false);
      }
      if (!part.want_dkv) continue;
      for (int64_t j = 0; j < present; ++j) {
        write(g.dk, s.first_key + block + j, head, dim, dk + j * k_step);
        write(g.dv, s.first_key + block + j, head, v_dim, dv + j * v_step);
      }
    }
    if (part.want_dq)
      for (int64_t r = 0; r < rows; ++r)
        write(g.dq, token(step, part, r), head_of(step, part, r), dim, dq + r * k_step);
  }

  // Writes scale * from to row (token, head) of x.
  static void write(const MutableHeads& x, int64_t token, int64_t head, int64_t dim, const float* from,
                    float scale = 1) {
    void* const to = x.at(token, head);
    for (int64_t i = 0; i < dim; i += lanes) {
      const W y = W::load(from + i) * W::set(scale);
      if (x.dtype == DType::f32)
        y.store(static_cast<float*>(to) + i, dim - i);
      else
        y.store(static_cast<bf16*>(to) + i, dim - i);
    }
  }

 private:
  static int64_t token(const AttentionBackwardStep& step, const AttentionBackwardPart& part, int64_t r) {
    return part.rows.sequence->first_query + (part.rows.first + r) / step.group();
  }
  static int64_t head_of(const AttentionBackwardStep& step, const AttentionBackwardPart& part, int64_t r) {
    return part.rows.kv_head * step.group() + (part.rows.first + r) % step.group();
  }
  static W read(const Heads& x, int64_t token, int64_t head, int64_t i, int64_t count) {
    const void* const row = x.at(token, head);
    return x.dtype == DType::f32 ? W::load(static_cast<const float*>(row) + i, count)
                                 : W::load(static_cast<const bf16*>(row) + i, count);
  }
  // For one row: from q k and dout v over 64 keys to the weights and the gradient of q k.
  static void differentiate(const AttentionSpec& spec, const Slope& slope, int64_t block, const float* products,
                            const float* dweights, Range keys, float lse, float dot, float* weights, float* dscores) {
    const typename AttentionLoops<V>::Score score(spec);
    const W base = W::set(lse * log2_e), scale = W::set(spec.scale), top_tanh = W::set(spec.softcap * log2_e);
    const bool whole = keys.begin == 0 && keys.end == key_block;
    for (int64_t i = 0; i < key_block / lanes; ++i) {
      const int64_t from = i * lanes;
      const W s = score(W::load(products + from));
      W weight = Math::exp2_of_negative(slope(s, block + from) - base);
      W dscore = weight * (W::load(dweights + from) - W::set(dot)) * scale;
      if (spec.softcap > 0) {
        const W t = s / top_tanh;
        dscore = dscore * Math::fma(W::zero() - t, t, W::set(1));
      }
      if (!whole) {
        const W at = Math::count() + W::set(float(i * lanes)), begin = W::set(float(keys.begin)),
                end = W::set(float(keys.end));
        weight = Math::less(at, begin, W::zero(), Math::less(at, end, weight, W::zero()));
        dscore = Math::less(at, begin, W::zero(), Math::less(at, end, dscore, W::zero()));
      }
      weight.store(weights + i * lanes);
      dscore.store(dscores + i * lanes);
    }
  }
};

}  // namespace easydel::kernels
