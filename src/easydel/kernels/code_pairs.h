// Decodes four-bit codes to pairs of bf16: one shift and one look-up in words give sixteen pairs of a weight. Included
// by loops_<set>.cpp only, where the target is AVX-512.
#pragma once

#include <immintrin.h>

#include "easydel/kernels/group_scales.h"
#include "easydel/kernels/quantized_layout.h"

namespace easydel::kernels {

struct CodePairs {
  // The sixteen values twice: a look-up in words reads five bits, and the fifth belongs to the next code.
  static __m512i table_of(const QuantizedStep& step) {
    alignas(64) bf16 words[32];
    for (int i = 0; i < 32; ++i) words[i] = narrow(step.table[i % 16]);
    return _mm512_load_si512(words);
  }
  static __m512i look_up(__m512i table, __m512i codes, unsigned pair) {
    return _mm512_permutexvar_epi16(_mm512_srli_epi32(codes, 4 * pair), table);
  }

  // Decodes `count` k of a group's codes, starting at k, as a panel of pairs; returns its end.
  static uint32_t* read_out(__m512i table, const uint8_t* of_group, int64_t k, int64_t count, uint32_t* to) {
    const uint8_t* codes = of_group + k / k_block * code_block_bytes;
    for (int64_t line = 0; line < count / 4; ++line, codes += 64, to += 64) {
      const __m512i all = _mm512_loadu_si512(codes);
      for (unsigned pair = 0; pair < 4; ++pair) _mm512_storeu_si512(to + pair * 16, look_up(table, all, pair));
    }
    return to;
  }
};

}  // namespace easydel::kernels
