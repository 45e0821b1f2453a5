// Products of few rows with panels of codes by VDPBF16PS: values are decoded in registers, pair by pair, so that no
// panel of values is written. Included by loops_avx512_bf16.cpp only.
#pragma once

#include <immintrin.h>

#include "easydel/kernels/code_panel_loops.h"
#include "easydel/kernels/product_loops.h"
#include "easydel/kernels/simd_avx512.h"

namespace easydel::kernels {

struct CodePanelPairs : private CodePanelLoops<Avx512> {
  using V = Avx512;

  // All rows of `panels` panels of the result; panel `panel` of it is panel `before` + panel of the weight. An element
  // has the same sum as in PairLoops with the decoded panel.
  static void multiply(const CodePanelsLayout& w, int64_t before, const ProductStep& step, int64_t panel,
                       int64_t panels) {
    with_codes(w, [&](const auto& codes) {
      if (is_scaled_only(w, DType::bf16))
        all_panels<true>(w, before, step, panel, panels, codes);
      else
        all_panels<false>(w, before, step, panel, panels, codes);
    });
  }

 private:
  template <bool only_scales, class Codes>
  static void all_panels(const CodePanelsLayout& w, int64_t before, const ProductStep& step, int64_t panel,
                         int64_t panels, const Codes& codes) {
    for (int64_t p = panel; p < panel + panels; ++p) {
      if (step.m == 1) one_panel<only_scales, 1>(w, before + p, step, p, codes);
      if (step.m == 2) one_panel<only_scales, 2>(w, before + p, step, p, codes);
      if (step.m == 3) one_panel<only_scales, 3>(w, before + p, step, p, codes);
      if (step.m == 4) one_panel<only_scales, 4>(w, before + p, step, p, codes);
    }
  }

  template <bool only_scales, int rows, class Codes>
  static void one_panel(const CodePanelsLayout& w, int64_t panel, const ProductStep& step, int64_t to,
                        const Codes& codes) {
    __m512 sums[2][rows];
    for (auto& of_tile : sums)
      for (__m512& sum : of_tile) sum = V::zero();
    const uint32_t* a = step.a_pairs;
    const auto add_stream = [&](auto& numbers, const uint8_t* at, int64_t begin, int64_t length) {
      const int64_t bytes = 2 * Codes::pairs * w.bytes_of_k();
      for (int64_t k = 0; k < length; k += 2 * Codes::pairs, at += bytes, a += Codes::pairs * rows) {
        for (int64_t line = 0; line < bytes; line += 64) V::prefetch(at + prefetch_distance_bytes + line);
        add_pairs<only_scales>(w.spec, numbers, codes, at, begin + k, a, sums,
                               std::make_integer_sequence<int, Codes::pairs>());
      }
    };
    if (w.spec.is_ordered()) {
      OrderedNumbers numbers(w, panel);
      add_stream(numbers, w.codes_at(panel, 0), 0, w.k);
    } else {
      Numbers numbers;
      for (int64_t g = 0; g < w.groups; ++g)
        add_stream(numbers, numbers.read(w, w.group_at(panel, g)), g * w.group, w.length_of(g));
    }
    // The zero pair that follows the last one in every product turns a sum of -0 into +0.
    const bool padded = w.k < 2 * step.padded_k;
    alignas(64) float c[rows * panel_columns];
    for (int r = 0; r < rows; ++r)
      for (int tile = 0; tile < 2; ++tile) {
        const __m512bh none = __m512bh(_mm512_setzero_si512());
        V::store(c + r * panel_columns + tile * tile_columns,
                 padded ? _mm512_dpbf16_ps(sums[tile][r], none, none) : sums[tile][r]);
      }
    ProductLoops<V>::write_rows(step, to, 0, rows, c);
  }

  template <bool only_scales, class GroupNumbers, class Codes, int rows, int... pair>
  [[gnu::always_inline]] static void add_pairs(const CodePanelsSpec& spec, GroupNumbers& numbers, const Codes& codes,
                                               const uint8_t* at, int64_t k, const uint32_t* a, __m512 (&sums)[2][rows],
                                               std::integer_sequence<int, pair...>) {
    (add_pair<only_scales, pair>(spec, numbers.of_pair(k + 2 * pair), codes, at, a + pair * rows, sums), ...);
  }

  template <bool only_scales, int pair, class PairNumbers, class Codes, int rows>
  [[gnu::always_inline]] static void add_pair(const CodePanelsSpec& spec, const PairNumbers& numbers,
                                              const Codes& codes, const uint8_t* at, const uint32_t* a,
                                              __m512 (&sums)[2][rows]) {
#pragma GCC unroll 2
    for (int tile = 0; tile < 2; ++tile) {
      const auto half = [&](int64_t v) {
        return value<only_scales>(spec, numbers, codes.template get<pair>(at, v), v, true);
      };
      // Neither is denormal, which the instruction would take for zero.
      const __m512bh w = _mm512_cvtne2ps_pbh(half(tile * k_block + V::width), half(tile * k_block));
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r)
        sums[tile][r] = _mm512_dpbf16_ps(sums[tile][r], w, __m512bh(_mm512_set1_epi32(int(a[r]))));
    }
  }
};

}  // namespace easydel::kernels
