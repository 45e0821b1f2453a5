// The loops for AVX-512 with VNNI: those of AVX-512, and byte dot products by VPDPBUSD.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"

// g++ 12 warns of the undefined registers in its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")
#include "easydel/kernels/attention_byte_loops.h"
#include "easydel/kernels/attention_tile_loops.h"
#include "easydel/kernels/quantized_loops.h"
#include "easydel/kernels/simd_avx512.h"

namespace easydel::kernels {

namespace {

struct VnniDots {
  using I = __m512i;
  static constexpr int ints = 16, registers = 32;

  static I zero() { return _mm512_setzero_si512(); }
  static I load(const int32_t* p) { return _mm512_loadu_si512(p); }
  static void store(int32_t* p, I x) { _mm512_storeu_si512(p, x); }
  static I bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static I add(I sum, I w, const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    return _mm512_dpbusd_epi32(sum, w, _mm512_set1_epi32(four));
  }
  static __m512 total(I sum, int32_t offset) {
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, _mm512_set1_epi32(offset)));
  }
};

}  // namespace

const Loops& avx512_vnni_loops() {
  static const Loops loops = [] {
    Loops all = avx512_loops();
    all.quantized.multiply_bytes = ByteLoops<Avx512, VnniDots>::multiply;
    using Tile = TileAttention<Avx512>;
    all.attention.coded.tiles = attend_byte_chunk<Tile, Bf16AttentionLoops<Avx512, Tile>::attend_coded_chunk>;
    add_pair_loops(all);
    return all;
  }();
  return loops;
}

}  // namespace easydel::kernels
