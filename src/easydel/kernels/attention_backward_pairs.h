// The inner loops of attention's backward for bf16 by VDPBF16PS (after arXiv 2205.14135, appendix B): all five products
// in pairs with fp32 accumulators; weights and gradients of scores are rounded to bf16 before their products. Included
// by loops_avx512_bf16.cpp only.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "easydel/kernels/attention_backward_loops.h"
#include "easydel/kernels/pair_loops.h"

namespace easydel::kernels {

struct AttentionBackwardPairs {
  using V = Avx512;
  using F = __m512;
  using W = Wide<V>;
  using Score = AttentionLoops<V>::Score;
  using Slope = AttentionLoops<V>::Slope;
  static constexpr int64_t side = backward_pair_block, pairs_of_side = side / 2;

  static void attend_backward(const AttentionBackwardStep& step, const AttentionBackwardPart& part) {
    const AttentionSpec& spec = step.spec;
    const AttentionGradient& g = step.gradient;
    const AttentionSequence& s = *part.rows.sequence;
    const int64_t kv_head = part.rows.kv_head;
    const Dims dim(spec.head_dim), v_dim(spec.v_dim);
    thread_local Scratch<uint32_t> rows_of_thread, keys_of_thread;
    std::vector<Rows> all = pack_rows(step, part, rows_of_thread);
    uint32_t* at = keys_of_thread.at_least(side * (2 * dim.pairs + v_dim.pairs + dim.step + v_dim.step));
    const auto take = [&](int64_t words) { return std::exchange(at, at + words); };
    Keys keys{.transposed = take(side * dim.pairs), .rows = take(side * dim.pairs), .values = take(side * v_dim.pairs)};
    keys.dk = reinterpret_cast<float*>(take(side * dim.step));
    keys.dv = reinterpret_cast<float*>(take(side * v_dim.step));

    for (int64_t block = part.keys.begin; block < part.keys.end; block += side) {
      keys.begin = block, keys.count = std::min(side, part.keys.end - block);
      const Input k(g.k.at(s.first_key + block, kv_head), DType::bf16, g.k.token_stride);
      const Input v(g.v.at(s.first_key + block, kv_head), DType::bf16, g.v.token_stride);
      for (int64_t p = 0; p * panel_columns < keys.count; ++p) {
        PairLoops::pack_panel(k, keys.count, dim.size, p, DType::bf16, keys.transposed + p * panel_columns * dim.pairs);
        PairLoops::pack_panel(v, keys.count, v_dim.size, p, DType::bf16, keys.values + p * panel_columns * v_dim.pairs);
      }
      if (part.want_dq) PairLoops::pack_panels(k, keys.count, dim.size, 0, dim.panels, pairs_of_side, keys.rows);
      if (part.want_dkv) {
        std::memset(keys.dk, 0, size_t(side * dim.step) * sizeof(float));
        std::memset(keys.dv, 0, size_t(side * v_dim.step) * sizeof(float));
      }
      for (const Rows& rows : all)
        if (!rows.sees(0, rows.count).within(block, block + keys.count).empty())
          add_block(step, part, rows, keys, dim, v_dim);
      if (!part.want_dkv) continue;
      for (int64_t j = 0; j < keys.count; ++j) {
        Plain::write(g.dk, s.first_key + block + j, kv_head, dim.size, keys.dk + j * dim.step, spec.scale);
        Plain::write(g.dv, s.first_key + block + j, kv_head, v_dim.size, keys.dv + j * v_dim.step);
      }
    }
    if (!part.want_dq) return;
    for (const Rows& rows : all)
      for (int64_t r = 0; r < rows.count; ++r)
        Plain::write(g.dq, s.first_query + rows.first + r, rows.head, dim.size, rows.dq + r * dim.step, spec.scale);
  }

  // Up to `side` queries of one head.
  struct RowsOfHead {
    const AttentionSpec* spec;
    const AttentionSequence* sequence;
    int64_t head, first, count;

    // The keys that at least one of the rows [begin, end) sees.
    Range sees(int64_t begin, int64_t end) const {
      return {visible(*spec, *sequence, first + begin).begin, visible(*spec, *sequence, first + end - 1).end};
    }
  };

  // Rounds 32 consecutive numbers, or two rows of sixteen as pairs.
  static __m512i rounded(F low, F high) { return __m512i(_mm512_cvtne2ps_pbh(high, low)); }
  static __m512i as_pairs(F even, F odd) {
    const __m512i ascending = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i order =
        _mm512_or_si512(ascending, _mm512_slli_epi32(_mm512_add_epi32(ascending, _mm512_set1_epi32(16)), 16));
    return _mm512_permutexvar_epi16(order, rounded(even, odd));
  }

  // 2^x with relative error 2^-18, enough for results that are rounded to bf16. A minimax polynomial.
  static F exp2(F x) {
    x = V::max(V::set1(-200), x);
    const F whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), f = V::sub(x, whole);
    F y = V::set1(0.00957009662f);
    y = V::fma(y, f, V::set1(0.0559178591f));
    y = V::fma(y, f, V::set1(0.240247443f));
    y = V::fma(y, f, V::set1(0.693121791f));
    return _mm512_scalef_ps(V::fma(y, f, V::set1(0.999999285f)), whole);
  }

 private:
  using Plain = AttentionBackwardLoops<V>;

  // A dimension padded with zeros to whole panels.
  struct Dims {
    int64_t size, step, pairs, panels;
    explicit Dims(int64_t dim)
        : size(dim), step(round_up(dim, panel_columns)), pairs(step / 2), panels(step / panel_columns) {}
  };

  struct Rows : RowsOfHead {
    uint32_t *q = nullptr, *dout = nullptr;            // tiles of rows, each [pair of dim][row]
    uint32_t *q_rows = nullptr, *dout_rows = nullptr;  // panels of dim, each [pair of rows][32]
    float *base = nullptr, *dots = nullptr;            // [count]: lse in powers of two, dout . out
    float* dq = nullptr;                               // [count][dim]
  };

  // Up to `side` keys with their values.
  struct Keys {
    uint32_t *transposed, *rows, *values;  // panels of keys, [pair of dim][32]; panels of dim, [pair of keys][32]
    float *dk = nullptr, *dv = nullptr;
    int64_t begin = 0, count = 0;
  };

  // Tile i of at most 12 of `count` rows: an even number of rows, tiles of equal size.
  static Range tile_of(int64_t count, int64_t i) {
    const int64_t tiles = divide_up(count, block_rows), pairs = divide_up(count, 2);
    return {pairs * i / tiles * 2, std::min(count, pairs * (i + 1) / tiles * 2)};
  }

  static std::vector<Rows> pack_rows(const AttentionBackwardStep& step, const AttentionBackwardPart& part,
                                     Scratch<uint32_t>& scratch) {
    const AttentionSpec& spec = step.spec;
    const AttentionGradient& g = step.gradient;
    const AttentionSequence& s = *part.rows.sequence;
    const Dims dim(spec.head_dim), v_dim(spec.v_dim);
    const int64_t group = step.group(), begin = part.rows.first / group, end = begin + part.rows.count / group;
    const int64_t words = side * (2 * dim.pairs + 2 * v_dim.pairs + dim.step + 2);
    uint32_t* at = scratch.at_least(divide_up(end - begin, side) * group * words);
    const auto take = [&](int64_t some) { return std::exchange(at, at + some); };
    std::vector<Rows> all;
    for (int64_t head = part.rows.kv_head * group; head < (part.rows.kv_head + 1) * group; ++head)
      for (int64_t first = begin; first < end; first += side) {
        Rows rows{{&spec, &s, head, first, std::min(side, end - first)}};
        rows.q = take(side * dim.pairs), rows.dout = take(side * v_dim.pairs);
        rows.q_rows = take(side * dim.pairs), rows.dout_rows = take(side * v_dim.pairs);
        rows.base = reinterpret_cast<float*>(take(side)), rows.dots = reinterpret_cast<float*>(take(side));
        rows.dq = reinterpret_cast<float*>(take(side * dim.step));
        const Input q(g.q.at(s.first_query + first, head), DType::bf16, g.q.token_stride);
        const Input dout(g.dout.at(s.first_query + first, head), DType::bf16, g.dout.token_stride);
        for (int64_t i = 0; i * block_rows < rows.count; ++i) {
          const Range t = tile_of(rows.count, i);
          PairLoops::pack_rows(q, t.begin, t.end - t.begin, dim.size, dim.pairs, rows.q + t.begin * dim.pairs);
          PairLoops::pack_rows(dout, t.begin, t.end - t.begin, v_dim.size, v_dim.pairs,
                               rows.dout + t.begin * v_dim.pairs);
        }
        if (part.want_dkv) {
          PairLoops::pack_panels(q, rows.count, dim.size, 0, dim.panels, pairs_of_side, rows.q_rows);
          PairLoops::pack_panels(dout, rows.count, v_dim.size, 0, v_dim.panels, pairs_of_side, rows.dout_rows);
        }
        for (int64_t r = 0; r < rows.count; ++r) {
          const int64_t row = (s.first_query + first + r) * spec.heads + head;
          rows.base[r] = g.lse[row] * Plain::log2_e, rows.dots[r] = step.dots[row];
        }
        if (part.want_dq) std::memset(rows.dq, 0, size_t(rows.count * dim.step) * sizeof(float));
        all.push_back(rows);
      }
    return all;
  }

  // c [count][32] (rows c_step apart) = or += left x these pairs of a panel. Pair i of row r of the left side is a[i *
  // a_step + r * row_step].
  template <int64_t row_step, int rows = int(block_rows)>
  static void multiply(int64_t count, const uint32_t* a, int64_t a_step, const uint32_t* panel, Range pairs, float* c,
                       int64_t c_step, bool first) {
    if constexpr (rows > 0) {
      if (count < rows) return multiply<row_step, rows - 1>(count, a, a_step, panel, pairs, c, c_step, first);
      F sum[rows][2];
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) sum[r][v] = first ? V::zero() : V::load(c + r * c_step + v * lanes);
      a += pairs.begin * a_step;
      for (int64_t i = pairs.begin; i < pairs.end;) {
        const int64_t end = std::min(pairs.end, (i / lanes + 1) * lanes);
        const uint32_t* b = panel + i / lanes * lanes * panel_columns + i % lanes * lanes;
        for (; i < end; ++i, a += a_step, b += lanes) {
          const __m512bh low = __m512bh(_mm512_load_si512(b)), high = __m512bh(_mm512_load_si512(b + PairLoops::tile));
#pragma GCC unroll 12
          for (int r = 0; r < rows; ++r) {
            const __m512bh x = __m512bh(_mm512_set1_epi32(int(a[r * row_step])));
            sum[r][0] = _mm512_dpbf16_ps(sum[r][0], low, x);
            sum[r][1] = _mm512_dpbf16_ps(sum[r][1], high, x);
          }
        }
      }
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) V::store(c + r * c_step + v * lanes, sum[r][v]);
    }
  }

  // What a row needs to compute its scores for a block of keys.
  struct Row {
    Range keys{0, 0};  // within the block
    float base = 0, dot = 0;
    Slope slope;

    // Mask of the keys that it sees among 32.
    __mmask32 mask(int64_t from) const {
      const Range here = keys.within(from, from + panel_columns);
      return here.empty() ? 0 : __mmask32((uint64_t(1) << (here.end - from)) - (uint64_t(1) << (here.begin - from)));
    }
  };

  // Weights and gradients of scores of one block of rows and one block of keys, rounded to bf16, as [pair of
  // rows][key]; the gradients also as [row][pair of keys], without the factor spec.scale.
  struct Block {
    Row rows[side];
    int64_t tiles;
    Range seen[divide_up(side, block_rows)];  // for each tile of rows: keys of the block
    alignas(64) uint32_t weights[pairs_of_side * side], dscores[pairs_of_side * side];
    alignas(64) uint32_t dscore_rows[side * pairs_of_side];
  };

  // Adds the gradients that `rows` and `keys` contribute to each other.
  static void add_block(const AttentionBackwardStep& step, const AttentionBackwardPart& part, const Rows& rows,
                        const Keys& keys, const Dims& dim, const Dims& v_dim) {
    thread_local Block block;
    look(rows, keys, block);
    for (int64_t i = 0; i < block.tiles; ++i) {
      const Range tile = tile_of(rows.count, i);
      for (int64_t from = 0; from < keys.count; from += panel_columns)
        differentiate_tile(step.spec, rows, tile, keys, from, block.seen[i], dim, v_dim, block);
      if (part.want_dq) add_to_rows(rows, tile, block.seen[i], keys, dim, block);
    }
    if (!part.want_dkv) return;
    add_to_keys(keys, rows, block, block.weights, rows.dout_rows, v_dim, keys.dv);
    add_to_keys(keys, rows, block, block.dscores, rows.q_rows, dim, keys.dk);
  }

  static void look(const Rows& rows, const Keys& keys, Block& block) {
    const auto of_block = [&](Range all) {
      all = all.within(keys.begin, keys.begin + keys.count);
      return all.empty() ? Range{0, 0} : Range{all.begin - keys.begin, all.end - keys.begin};
    };
    for (int64_t r = 0; r < round_up(rows.count, 2); ++r)
      block.rows[r] = r == rows.count ? Row{}
                                      : Row{of_block(rows.sees(r, r + 1)), rows.base[r], rows.dots[r],
                                            Slope(*rows.spec, rows.head, rows.sequence->past + rows.first + r)};
    block.tiles = divide_up(rows.count, block_rows);
    for (int64_t i = 0; i < block.tiles; ++i) {
      const Range t = tile_of(rows.count, i);
      block.seen[i] = of_block(rows.sees(t.begin, t.end));
    }
  }

  // dq += ds k.
  static void add_to_rows(const Rows& rows, Range tile, Range seen, const Keys& keys, const Dims& dim,
                          const Block& block) {
    const Range pairs{seen.begin / 2, divide_up(seen.end, 2)};
    for (int64_t p = 0; p < dim.panels && !seen.empty(); ++p)
      multiply<pairs_of_side>(tile.end - tile.begin, block.dscore_rows + tile.begin * pairs_of_side, 1,
                              keys.rows + p * pairs_of_side * panel_columns, pairs,
                              rows.dq + tile.begin * dim.step + p * panel_columns, dim.step, false);
  }

  // dv += p^T dout, dk += ds^T q; `left` is [pair of rows][key].
  static void add_to_keys(const Keys& keys, const Rows& rows, const Block& block, const uint32_t* left,
                          const uint32_t* right, const Dims& dim, float* to) {
    for (int64_t p = 0; p < dim.panels; ++p)
      for (int64_t j = 0; j * block_rows < keys.count; ++j) {
        const Range some = tile_of(keys.count, j);
        Range seeing{block.tiles, 0};
        for (int64_t i = 0; i < block.tiles; ++i)
          if (block.seen[i].begin < some.end && block.seen[i].end > some.begin)
            seeing = {std::min(seeing.begin, i), i + 1};
        if (seeing.empty()) continue;
        const Range pairs{tile_of(rows.count, seeing.begin).begin / 2,
                          divide_up(tile_of(rows.count, seeing.end - 1).end, 2)};
        multiply<1>(some.end - some.begin, left + some.begin, side, right + p * pairs_of_side * panel_columns, pairs,
                    to + some.begin * dim.step + p * panel_columns, dim.step, false);
      }
  }

  // One tile of rows with the 32 keys starting at `from` of the block; zeros if none of them is seen.
  static void differentiate_tile(const AttentionSpec& spec, const Rows& rows, Range tile, const Keys& keys,
                                 int64_t from, Range seen, const Dims& dim, const Dims& v_dim, Block& block) {
    const int64_t count = tile.end - tile.begin;
    uint32_t* const weights = block.weights + tile.begin / 2 * side + from;
    uint32_t* const dscores = block.dscores + tile.begin / 2 * side + from;
    uint32_t* const dscore_rows = block.dscore_rows + (tile.begin * side + from) / 2;
    if (seen.within(from, from + panel_columns).empty()) {
      for (int64_t r = 0; r < count; r += 2) {
        std::memset(weights + r / 2 * side, 0, panel_columns * sizeof(uint32_t));
        std::memset(dscores + r / 2 * side, 0, panel_columns * sizeof(uint32_t));
      }
      return;
    }
    alignas(64) float scores[block_rows * panel_columns], dweights[block_rows * panel_columns];
    multiply<1>(count, rows.q + tile.begin * dim.pairs, count, keys.transposed + from * dim.pairs, {0, dim.pairs},
                scores, panel_columns, true);
    multiply<1>(count, rows.dout + tile.begin * v_dim.pairs, count, keys.values + from * v_dim.pairs, {0, v_dim.pairs},
                dweights, panel_columns, true);
    const auto all_rows = [&](auto plain) {
      for (int64_t r = 0; r < count; r += 2)
        differentiate<decltype(plain)::value>(spec, {scores + r * panel_columns, dweights + r * panel_columns},
                                              block.rows + tile.begin + r, keys.begin, from, weights + r / 2 * side,
                                              dscores + r / 2 * side, dscore_rows + r * pairs_of_side);
    };
    spec.softcap == 0 && !spec.slopes ? all_rows(std::true_type()) : all_rows(std::false_type());
  }

  struct Products {
    const float *scores, *dweights;  // q . k and dout . v
  };

  // Two rows with 32 keys.
  template <bool plain>
  [[gnu::always_inline]] static void differentiate(const AttentionSpec& spec, const Products& products, const Row* rows,
                                                   int64_t block, int64_t from, uint32_t* weights, uint32_t* dscores,
                                                   uint32_t* dscore_rows) {
    const Score score(spec);
    F weight[2][2], dscore[2][2];
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r) {
      const Row& row = rows[r];
      const __mmask32 seen = row.mask(from);
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const F product = V::load(products.scores + r * panel_columns + i * lanes);
        const F dweight = V::load(products.dweights + r * panel_columns + i * lanes);
        const __mmask16 own = __mmask16(seen >> (i * lanes));
        F x, slope = V::set1(1);
        if constexpr (plain) {
          x = _mm512_fmsub_ps(product, score.scale.part[0], V::set1(row.base));
        } else {
          const W s = score(W{{product}});
          if (spec.softcap > 0) {
            const F t = V::div(s.part[0], score.to_log2.part[0]);
            slope = _mm512_fnmadd_ps(t, t, slope);
          }
          x = V::sub(row.slope(s, block + from + i * lanes).part[0], V::set1(row.base));
        }
        weight[r][i] = _mm512_maskz_mov_ps(own, exp2(x));
        dscore[r][i] = _mm512_maskz_mul_ps(own, weight[r][i], V::sub(dweight, V::set1(row.dot)));
        if constexpr (!plain) dscore[r][i] = _mm512_maskz_mul_ps(own, dscore[r][i], slope);
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      _mm512_store_si512(weights + i * lanes, as_pairs(weight[0][i], weight[1][i]));
      _mm512_store_si512(dscores + i * lanes, as_pairs(dscore[0][i], dscore[1][i]));
      _mm512_store_si512(dscore_rows + i * pairs_of_side, rounded(dscore[i][0], dscore[i][1]));
    }
  }
};

}  // namespace easydel::kernels
