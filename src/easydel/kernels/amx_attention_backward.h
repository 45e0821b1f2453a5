// The inner loops of attention's backward for bf16 by tiles (after arXiv 2205.14135, appendix B): all five products in
// the order bf16_tile; weights and gradients of scores are rounded to bf16 before their products. Scores are computed
// transposed, [key][row], the layout that the gradients of keys and values read. Included by loops_amx.cpp only.
#pragma once

#include <utility>
#include <vector>

#include "easydel/kernels/amx_loops.h"
#include "easydel/kernels/attention_backward_pairs.h"

namespace easydel::kernels {

struct AmxAttentionBackward {
  using V = Avx512;
  using F = __m512;
  using W = Wide<V>;
  using Score = AttentionLoops<V>::Score;
  using Plain = AttentionBackwardLoops<V>;
  using Rounded = AttentionBackwardPairs;
  static constexpr int64_t tile = 32, side = backward_pair_block, tiles = side / tile;

  static void attend_backward(const AttentionBackwardStep& step, const AttentionBackwardPart& part) {
    const AttentionSpec& spec = step.spec;
    const AttentionGradient& g = step.gradient;
    const AttentionSequence& s = *part.rows.sequence;
    const int64_t kv_head = part.rows.kv_head;
    const Dims dim(spec.head_dim), v_dim(spec.v_dim);
    thread_local Scratch<uint32_t> rows_of_thread, keys_of_thread;
    std::vector<Rows> all = pack_rows(step, part, dim, v_dim, rows_of_thread);
    uint32_t* at = keys_of_thread.at_least(side * (dim.step + v_dim.step / 2 + dim.step + v_dim.step));
    const auto take = [&](int64_t words) { return std::exchange(at, at + words); };
    Keys keys;
    keys.rows = reinterpret_cast<bf16*>(take(side * dim.step / 2));
    keys.transposed = reinterpret_cast<bf16*>(take(side * dim.step / 2));
    keys.values = reinterpret_cast<bf16*>(take(side * v_dim.step / 2));
    keys.dk = reinterpret_cast<float*>(take(side * dim.step));
    keys.dv = reinterpret_cast<float*>(take(side * v_dim.step));
    TileRegisters registers(AmxLoops::line);

    for (int64_t block = part.keys.begin; block < part.keys.end; block += side) {
      keys.begin = block, keys.count = std::min(side, part.keys.end - block);
      const Input k(g.k.at(s.first_key + block, kv_head), DType::bf16, g.k.token_stride);
      const Input v(g.v.at(s.first_key + block, kv_head), DType::bf16, g.v.token_stride);
      for (int64_t j = 0; j < keys.count; j += tile) {
        AmxLoops::pack_rows(k, j, keys.of_tile(j), dim.size, keys.rows + j * dim.step);
        AmxLoops::pack_rows(v, j, keys.of_tile(j), v_dim.size, keys.values + j * v_dim.step);
      }
      if (part.want_dq) AmxLoops::pack_columns(k, 0, dim.size, keys.count, keys.transposed);
      std::memset(keys.dk, 0, size_t(side * dim.step) * sizeof(float));
      std::memset(keys.dv, 0, size_t(side * v_dim.step) * sizeof(float));
      for (const Rows& rows : all)
        if (!rows.sees(0, rows.count).within(block, block + keys.count).empty())
          add_block(registers, part, rows, keys, dim, v_dim);
      if (!part.want_dkv) continue;
      for (int64_t j = 0; j < keys.count; ++j) {
        Plain::write(g.dk, s.first_key + block + j, kv_head, dim.size, keys.dk + j * dim.step, spec.scale);
        Plain::write(g.dv, s.first_key + block + j, kv_head, v_dim.size, keys.dv + j * v_dim.step);
      }
    }
    if (!part.want_dq) return;
    thread_local Scratch<float> transposed_of_thread;
    float* const transposed = transposed_of_thread.at_least(tile * dim.step);
    for (const Rows& rows : all)
      for (int64_t r = 0; r < rows.count; r += tile) {
        Tiles<V>::transpose([&](int64_t d) { return rows.dq + r * dim.step + d * tile; }, dim.size, tile, dim.step,
                            transposed);
        for (int64_t i = r; i < std::min(r + tile, rows.count); ++i)
          Plain::write(g.dq, s.first_query + rows.first + i, rows.head, dim.size, transposed + (i - r) * dim.step,
                       spec.scale);
      }
  }

 private:
  // A dimension padded with zeros to whole panels.
  struct Dims {
    int64_t size, step, panels, blocks;
    explicit Dims(int64_t dim)
        : size(dim), step(round_up(dim, panel_columns)), panels(step / panel_columns), blocks(step / k_block) {}
  };

  struct Rows : AttentionBackwardPairs::RowsOfHead {
    bf16 *q = nullptr, *dout = nullptr;                // panels of rows over dim
    uint32_t *q_rows = nullptr, *dout_rows = nullptr;  // panels of dim over rows
    float *base = nullptr, *dots = nullptr;            // [side]: lse in powers of two, dout . out
    int32_t *begin = nullptr, *end = nullptr;          // [side]: the keys that each row sees
    float* dq = nullptr;                               // [tile of rows][dim][32]
  };

  // Up to `side` keys with their values.
  struct Keys {
    bf16 *rows, *transposed, *values;  // left sides: keys over dim, dim over keys, values over v_dim
    float *dk, *dv;
    int64_t begin = 0, count = 0;
    int64_t of_tile(int64_t from) const { return std::min(tile, count - from); }
  };

  static std::vector<Rows> pack_rows(const AttentionBackwardStep& step, const AttentionBackwardPart& part,
                                     const Dims& dim, const Dims& v_dim, Scratch<uint32_t>& scratch) {
    const AttentionSpec& spec = step.spec;
    const AttentionGradient& g = step.gradient;
    const AttentionSequence& s = *part.rows.sequence;
    const int64_t group = step.group(), begin = part.rows.first / group, end = begin + part.rows.count / group;
    uint32_t* at = scratch.at_least(divide_up(end - begin, side) * group * side * (2 * dim.step + v_dim.step + 4));
    const auto take = [&](int64_t some) { return std::exchange(at, at + some); };
    std::vector<Rows> all;
    for (int64_t head = part.rows.kv_head * group; head < (part.rows.kv_head + 1) * group; ++head)
      for (int64_t first = begin; first < end; first += side) {
        Rows rows{{&spec, &s, head, first, std::min(side, end - first)}};
        rows.q = reinterpret_cast<bf16*>(take(side * dim.step / 2));
        rows.dout = reinterpret_cast<bf16*>(take(side * v_dim.step / 2));
        rows.q_rows = take(side * dim.step / 2), rows.dout_rows = take(side * v_dim.step / 2);
        rows.base = reinterpret_cast<float*>(take(side)), rows.dots = reinterpret_cast<float*>(take(side));
        rows.begin = reinterpret_cast<int32_t*>(take(side)), rows.end = reinterpret_cast<int32_t*>(take(side));
        rows.dq = reinterpret_cast<float*>(take(side * dim.step));
        const Input q(g.q.at(s.first_query + first, head), DType::bf16, g.q.token_stride);
        const Input dout(g.dout.at(s.first_query + first, head), DType::bf16, g.dout.token_stride);
        for (int64_t p = 0; p * tile < rows.count; ++p) {
          PairPacking::pack_panel(q, rows.count, dim.size, p, DType::bf16, rows.q + p * tile * dim.step);
          PairPacking::pack_panel(dout, rows.count, v_dim.size, p, DType::bf16, rows.dout + p * tile * v_dim.step);
        }
        if (part.want_dkv) {
          PairPacking::pack_panels(q, rows.count, dim.size, 0, dim.panels, side / 2, rows.q_rows);
          PairPacking::pack_panels(dout, rows.count, v_dim.size, 0, v_dim.panels, side / 2, rows.dout_rows);
        }
        for (int64_t r = 0; r < side; ++r) {
          const bool own = r < rows.count;
          const int64_t row = (s.first_query + first + (own ? r : 0)) * spec.heads + head;
          const Range keys = own ? visible(spec, s, first + r) : Range{0, 0};
          rows.base[r] = own ? g.lse[row] * Plain::log2_e : 0, rows.dots[r] = own ? step.dots[row] : 0;
          rows.begin[r] = int32_t(keys.begin), rows.end[r] = int32_t(keys.end);
        }
        if (part.want_dq) std::memset(rows.dq, 0, size_t(side * dim.step) * sizeof(float));
        all.push_back(rows);
      }
    return all;
  }

  // Weights and gradients of scores of one block of rows and one block of keys, rounded to bf16. As left sides: [tile
  // of keys][tile of rows][key][32]; the gradients also as right sides: [tile of rows][tile of keys], without the
  // factor spec.scale. Tiles without a visible pair are zeros.
  struct Block {
    bool seen[tiles][tiles];  // [tile of rows][tile of keys]
    alignas(64) bf16 weights[tiles][tiles][tile * tile], dscores[tiles][tiles][tile * tile];
    alignas(64) uint32_t dscore_pairs[tiles][tiles][tile / 2 * tile];
  };

  // Adds the gradients that `rows` and `keys` contribute to each other.
  static void add_block(TileRegisters& registers, const AttentionBackwardPart& part, const Rows& rows, const Keys& keys,
                        const Dims& dim, const Dims& v_dim) {
    thread_local Block block;
    const int64_t row_tiles = divide_up(rows.count, tile), key_tiles = divide_up(keys.count, tile);
    for (int64_t i = 0; i < row_tiles; ++i) {
      const Range sees = rows.sees(i * tile, std::min(rows.count, (i + 1) * tile));
      for (int64_t j = 0; j < key_tiles; ++j) {
        const int64_t from = keys.begin + j * tile;
        block.seen[i][j] = !sees.within(from, from + keys.of_tile(j * tile)).empty();
        if (block.seen[i][j]) {
          differentiate_tile(registers, rows, i, keys, j, dim, v_dim, block);
          continue;
        }
        std::memset(block.weights[j][i], 0, sizeof block.weights[j][i]);
        std::memset(block.dscores[j][i], 0, sizeof block.dscores[j][i]);
        std::memset(block.dscore_pairs[i][j], 0, sizeof block.dscore_pairs[i][j]);
      }
    }
    if (part.want_dq)
      for (int64_t i = 0; i < row_tiles; ++i)
        add_to_rows(registers, rows, i, keys, seen_by(key_tiles, [&](int64_t j) { return block.seen[i][j]; }), dim,
                    block);
    if (!part.want_dkv) return;
    for (int64_t j = 0; j < key_tiles; ++j) {
      const Range some = seen_by(row_tiles, [&](int64_t i) { return block.seen[i][j]; });
      if (some.empty()) continue;
      add_to_keys(registers, keys, j, some, block.weights[j], rows.dout_rows, v_dim, keys.dv);
      add_to_keys(registers, keys, j, some, block.dscores[j], rows.q_rows, dim, keys.dk);
    }
  }

  // The range from the first to the last tile that is seen.
  template <class Seen>
  static Range seen_by(int64_t count, const Seen& seen) {
    Range all{count, 0};
    for (int64_t i = 0; i < count; ++i)
      if (seen(i)) all = {std::min(all.begin, i), i + 1};
    return all;
  }

  // dq^T += k^T ds^T.
  static void add_to_rows(TileRegisters& registers, const Rows& rows, int64_t i, const Keys& keys, Range some,
                          const Dims& dim, const Block& block) {
    const int64_t padded = round_up(keys.count, k_block);
    LinesAhead nothing;
    for (int64_t d = 0; d < dim.size && !some.empty(); d += tile) {
      const int64_t count = std::min(tile, dim.size - d);
      sum_tiles<Bf16Tiles>(registers, keys.transposed + d * padded + some.begin * count * k_block, count,
                           block.dscore_pairs[i][some.begin], some.end - some.begin,
                           {rows.dq + i * tile * dim.step + d * tile, false}, nothing);
    }
  }

  // dv += p^T dout, dk += ds^T q, for some tiles of rows.
  static void add_to_keys(TileRegisters& registers, const Keys& keys, int64_t j, Range some,
                          const bf16 (&left)[tiles][tile * tile], const uint32_t* right, const Dims& dim, float* to) {
    const int64_t count = keys.of_tile(j * tile);
    LinesAhead nothing;
    for (int64_t p = 0; p < dim.panels; ++p)
      for (int64_t i = some.begin; i < some.end;) {
        // The distance between tiles of rows is that of whole tiles of keys.
        const int64_t blocks = count == tile ? some.end - i : 1;
        sum_tiles<Bf16Tiles>(registers, left[i], count, right + (p * tiles + i) * tile_elements, blocks,
                             {to + j * tile * dim.step + p * panel_columns, false, dim.step * int64_t(sizeof(float))},
                             nothing);
        i += blocks;
      }
  }

  // Tile i of rows with tile j of keys.
  static void differentiate_tile(TileRegisters& registers, const Rows& rows, int64_t i, const Keys& keys, int64_t j,
                                 const Dims& dim, const Dims& v_dim, Block& block) {
    const int64_t count = keys.of_tile(j * tile);
    alignas(64) float scores[tile * tile], dweights[tile * tile];
    LinesAhead nothing;
    sum_tiles<Bf16Tiles>(registers, keys.rows + j * tile * dim.step, count, rows.q + i * tile * dim.step, dim.blocks,
                         {scores, true}, nothing);
    sum_tiles<Bf16Tiles>(registers, keys.values + j * tile * v_dim.step, count, rows.dout + i * tile * v_dim.step,
                         v_dim.blocks, {dweights, true}, nothing);
    const bool plain = rows.spec->softcap == 0 && !rows.spec->slopes;
    const auto differentiate =
        plain ? AmxAttentionBackward::differentiate<true> : AmxAttentionBackward::differentiate<false>;
    differentiate(rows, i * tile, keys.begin + j * tile, count, scores, dweights, block.weights[j][i],
                  block.dscores[j][i], block.dscore_pairs[i][j]);
  }

  // 32 rows starting at `row` with `count` keys starting at `key`.
  template <bool plain>
  static void differentiate(const Rows& rows, int64_t row, int64_t key, int64_t count, const float* scores,
                            const float* dweights, bf16* weights, bf16* dscores, uint32_t* pairs) {
    const AttentionSpec& spec = *rows.spec;
    const Score score(spec);
    const F slope = V::set1(plain || !spec.slopes ? 0 : -spec.slopes[rows.head] * Plain::log2_e);
    for (int64_t j = 0; j < tile; j += 2) {
      F weight[2][2], dscore[2][2];  // for two keys
#pragma GCC unroll 2
      for (int64_t h = 0; h < 2; ++h)
#pragma GCC unroll 2
        for (int64_t i = 0; i < 2; ++i) {
          const int64_t at = std::min(j + h, count - 1) * tile + i * lanes, from = row + i * lanes;
          const __m512i now = _mm512_set1_epi32(int32_t(key + j + h));
          const __mmask16 sees = _mm512_cmple_epi32_mask(_mm512_loadu_si512(rows.begin + from), now) &
                                 _mm512_cmpgt_epi32_mask(_mm512_loadu_si512(rows.end + from), now);
          const __mmask16 own = j + h < count ? sees : __mmask16(0);
          const F base = V::load(rows.base + from);
          F x, factor = V::set1(1);
          if constexpr (plain) {
            x = _mm512_fmsub_ps(V::load(scores + at), score.scale.part[0], base);
          } else {
            F s = score(W{{V::load(scores + at)}}).part[0];
            if (spec.softcap > 0) {
              const F t = V::div(s, score.to_log2.part[0]);
              factor = _mm512_fnmadd_ps(t, t, factor);
            }
            if (spec.slopes && spec.rounded_slopes) {
              const float place = widen(narrow(float(key + j + h))), of_head = widen(narrow(spec.slopes[rows.head]));
              s = V::fma(V::set1(widen(narrow(of_head * place))), V::set1(spec.scale * Plain::log2_e), s);
            } else if (spec.slopes) {
              const float off = float(key + j + h - (rows.sequence->past + rows.first + from));
              s = V::fma(V::abs(V::sub(V::set1(off), WideMath<V>::count().part[0])), slope, s);
            }
            x = V::sub(s, base);
          }
          weight[h][i] = _mm512_maskz_mov_ps(own, Rounded::exp2(x));
          dscore[h][i] =
              _mm512_maskz_mul_ps(own, weight[h][i], V::sub(V::load(dweights + at), V::load(rows.dots + from)));
          if constexpr (!plain) dscore[h][i] = _mm512_maskz_mul_ps(own, dscore[h][i], factor);
        }
      for (int64_t h = 0; h < 2 && j + h < count; ++h) {
        _mm512_store_si512(weights + (j + h) * tile, Rounded::rounded(weight[h][0], weight[h][1]));
        _mm512_store_si512(dscores + (j + h) * tile, Rounded::rounded(dscore[h][0], dscore[h][1]));
      }
      for (int64_t i = 0; i < 2; ++i)
        _mm512_store_si512(pairs + i * (tile_elements / 2) + j / 2 * lanes,
                           Rounded::as_pairs(dscore[0][i], dscore[1][i]));
    }
  }
};

}  // namespace easydel::kernels
