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
    const int64_t panels = divide_up(dim, panel_columns), v_panels = divide_up(v_dim, panel_columns);
    const int64_t padded = round_up(rows, block_rows);

    thread_local Scratch<float> rows_of_thread, keys_of_thread;
    float* at = rows_of_thread.at_least(padded * (2 * panels + v_panels) * panel_columns + padded * (dim + v_dim));
    const auto take = [&](int64_t floats) { return std::exchange(at, at + floats); };
    float* const q_panels = take(padded * panels * panel_columns);
    float* const dout_panels = take(padded * v_panels * panel_columns);
    float* const dq = take(padded * panels * panel_columns);
    float* const q_turned = take(padded * dim);
    float* const dout_turned = take(padded * v_dim);
    at = keys_of_thread.at_least(key_block * (dim + v_dim + (2 * panels + v_panels) * panel_columns));
    float* const k_turned = take(key_block * dim);
    float* const v_turned = take(key_block * v_dim);
    float* const k_panels = take(key_block * panels * panel_columns);
    float* const dk = take(key_block * panels * panel_columns);
    float* const dv = take(key_block * v_panels * panel_columns);

    const auto q_row = [&](int64_t r) { return g.q.at(token(step, part, r), head_of(step, part, r)); };
    const auto dout_row = [&](int64_t r) { return g.dout.at(token(step, part, r), head_of(step, part, r)); };
    for (int64_t t = 0; t < rows; t += block_rows) {
      const int64_t count = std::min(block_rows, rows - t);
      Packing::turn(
          g.q.number, [&](int64_t r) { return q_row(t + r); }, count, dim, count, q_turned + t * dim);
      Packing::turn(
          g.dout.number, [&](int64_t r) { return dout_row(t + r); }, count, v_dim, count, dout_turned + t * v_dim);
    }
    if (part.want_dkv) {
      Packing::copy(g.q.number, q_row, rows, dim, padded, q_panels);
      Packing::copy(g.dout.number, dout_row, rows, v_dim, padded, dout_panels);
    }
    if (part.want_dq) std::memset(dq, 0, size_t(padded * panels * panel_columns) * sizeof(float));

    alignas(64) float weights[backward_rows * key_block], dscores[backward_rows * key_block];
    alignas(64) float scores[2 * block_rows * panel_columns], dweights[2 * block_rows * panel_columns];
    for (int64_t block = part.keys.begin; block < part.keys.end; block += key_block) {
      const int64_t present = std::min(key_block, part.keys.end - block);
      Packing::turn_keys(s, g.k, head, block, present, dim, k_turned);
      Packing::turn_keys(s, g.v, head, block, present, v_dim, v_turned);
      if (part.want_dq) {
        if (present < key_block) std::memset(k_panels, 0, size_t(key_block * panels * panel_columns) * sizeof(float));
        Packing::copy_keys(s, g.k, head, block, present, dim, k_panels);
      }
      if (part.want_dkv) {
        std::memset(dk, 0, size_t(key_block * panels * panel_columns) * sizeof(float));
        std::memset(dv, 0, size_t(key_block * v_panels * panel_columns) * sizeof(float));
      }
      for (int64_t first = 0; first < rows; first += backward_rows) {
        Range seeing{backward_rows, 0};  // rows of this group, whole tiles of them, that see anything of the block
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
          for (int64_t p = 0; p < key_block; p += panel_columns) {
            Tile::rows_f32(count, q_turned + t * dim, count, k_turned + p * dim, dim, scores + p * block_rows, true);
            Tile::rows_f32(count, dout_turned + t * v_dim, count, v_turned + p * v_dim, v_dim,
                           dweights + p * block_rows, true);
          }
          float* const dscores_of_tile = dscores + (t - first) * key_block;
          for (int64_t r = 0; r < count; ++r) {
            const int64_t row = token(step, part, t + r) * spec.heads + head_of(step, part, t + r);
            differentiate(spec, scores + r * panel_columns, dweights + r * panel_columns, of_row[r], g.lse[row],
                          step.dots[row], weights + (t - first + r) * key_block, dscores_of_tile + r * key_block);
          }
          if (part.want_dq)
            for (int64_t p = 0; p < panels; ++p)
              Tile::template rows_f32<key_block>(count, dscores_of_tile, 1, k_panels + p * key_block * panel_columns,
                                                 key_block, dq + (t * panels + p * block_rows) * panel_columns, false);
        }
        if (seeing.empty() || !part.want_dkv) continue;
        const int64_t k = seeing.end - seeing.begin, from = first + seeing.begin;
        for (int64_t p = 0; p < v_panels; ++p)
          Tile::rows_f32(present, weights + seeing.begin * key_block, key_block,
                         dout_panels + (p * padded + from) * panel_columns, k, dv + p * key_block * panel_columns,
                         false);
        for (int64_t p = 0; p < panels; ++p)
          Tile::rows_f32(present, dscores + seeing.begin * key_block, key_block,
                         q_panels + (p * padded + from) * panel_columns, k, dk + p * key_block * panel_columns, false);
      }
      if (!part.want_dkv) continue;
      for (int64_t j = 0; j < present; ++j) {
        write(g.dk, s.first_key + block + j, head, dim, dk + j * panel_columns, key_block);
        write(g.dv, s.first_key + block + j, head, v_dim, dv + j * panel_columns, key_block);
      }
    }
    if (part.want_dq)
      for (int64_t r = 0; r < rows; ++r)
        write(g.dq, token(step, part, r), head_of(step, part, r), dim,
              dq + (r / block_rows * block_rows * panels + r % block_rows) * panel_columns, block_rows);
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
    return x.number == Number::f32 ? W::load(static_cast<const float*>(row) + i, count)
                                   : W::load(static_cast<const bf16*>(row) + i, count);
  }
  // One row of panels that are `most` rows long.
  static void write(const MutableHeads& x, int64_t token, int64_t head, int64_t dim, const float* from, int64_t most) {
    void* const to = x.at(token, head);
    for (int64_t i = 0; i < dim; i += lanes) {
      const W y = W::load(from + i / panel_columns * most * panel_columns + i % panel_columns);
      if (x.number == Number::f32)
        y.store(static_cast<float*>(to) + i, dim - i);
      else
        y.store(static_cast<bf16*>(to) + i, dim - i);
    }
  }

  // Of one row: q k and dout v over 64 keys (panels 12 x 32 apart) to the weights and the gradient of q k.
  static void differentiate(const AttentionSpec& spec, const float* products, const float* dweights, Range keys,
                            float lse, float dot, float* weights, float* dscores) {
    const typename AttentionLoops<V>::Score score(spec);
    const W base = W::set(lse * log2_e), scale = W::set(spec.scale), top_tanh = W::set(spec.softcap * log2_e);
    const bool whole = keys.begin == 0 && keys.end == key_block;
    for (int64_t i = 0; i < key_block / lanes; ++i) {
      const int64_t from = i / 2 * block_rows * panel_columns + i % 2 * lanes;
      const W s = score(W::load(products + from));
      W weight = Math::exp2_of_negative(s - base);
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
