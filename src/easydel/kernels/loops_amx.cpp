// The loops for AMX: those of AVX-512 and the bf16 product by tiles.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"

// g++ 12 warns of the undefined registers in its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
#include "easydel/kernels/amx.h"
#include "easydel/kernels/simd_avx512.h"

namespace easydel::kernels {

namespace {

// Four chains of tile products in registers, as the sums of a block are.
double multiply_bf16(int64_t rounds, float*) {
  HardwareTiles::configure(TileConfig(tile_rows));
  HardwareTiles::zero<0>(), HardwareTiles::zero<1>(), HardwareTiles::zero<2>(), HardwareTiles::zero<3>();
  HardwareTiles::zero<4>(), HardwareTiles::zero<5>(), HardwareTiles::zero<6>(), HardwareTiles::zero<7>();
  for (int64_t r = 0; r < rounds; ++r) {
    HardwareTiles::multiply<0, 4, 6>(), HardwareTiles::multiply<1, 4, 7>();
    HardwareTiles::multiply<2, 5, 6>(), HardwareTiles::multiply<3, 5, 7>();
  }
  HardwareTiles::release();
  return 4.0 * 2 * 16 * 16 * 32 * double(rounds);
}

double multiply_bytes(int64_t rounds, float*) {
  HardwareTiles::configure(TileConfig(tile_rows));
  HardwareTiles::zero<0>(), HardwareTiles::zero<1>(), HardwareTiles::zero<2>(), HardwareTiles::zero<3>();
  HardwareTiles::zero<4>(), HardwareTiles::zero<5>(), HardwareTiles::zero<6>(), HardwareTiles::zero<7>();
  for (int64_t r = 0; r < rounds; ++r) {
    HardwareTiles::multiply_bytes<0, 4, 6>(), HardwareTiles::multiply_bytes<1, 4, 7>();
    HardwareTiles::multiply_bytes<2, 5, 6>(), HardwareTiles::multiply_bytes<3, 5, 7>();
  }
  HardwareTiles::release();
  return 4.0 * 2 * 16 * 16 * 64 * double(rounds);
}

}  // namespace

const Loops& amx_loops() {
  static const Loops loops = [] {
    using Tiled = AmxLoops<HardwareTiles, Avx512>;
    Loops all = avx512_vnni_loops();
    all.pack_tile_rows = Tiled::pack_tile_rows;
    all.multiply_tiles = Tiled::multiply_tiles;
    all.peak_bf16 = multiply_bf16;
    all.peak_int8 = multiply_bytes;
    return all;
  }();
  return loops;
}

}  // namespace easydel::kernels
