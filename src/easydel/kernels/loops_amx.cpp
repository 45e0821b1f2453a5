// The loops for AMX: those of AVX-512, and products by tiles.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"

// g++ 12 warns of the undefined registers in its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")
#include "easydel/kernels/amx_attention.h"
#include "easydel/kernels/amx_attention_backward.h"
#include "easydel/kernels/amx_loops.h"
#include "easydel/kernels/amx_quantized_loops.h"

namespace easydel::kernels {

namespace {

// Four chains of tile products in registers, like the accumulators of a block; counts operations per byte of a row of
// k.
template <class Op, int of_line>
double peak(int64_t rounds, float*) {
  TileRegisters registers(64);
  registers.take(tile_rows);
  Amx::zero<0>(), Amx::zero<1>(), Amx::zero<2>(), Amx::zero<3>();
  Amx::zero<4>(), Amx::zero<5>(), Amx::zero<6>(), Amx::zero<7>();
  for (int64_t r = 0; r < rounds; ++r) {
    Op::template multiply<0, 4, 6>(), Op::template multiply<1, 4, 7>();
    Op::template multiply<2, 5, 6>(), Op::template multiply<3, 5, 7>();
  }
  return 4.0 * 2 * 16 * 16 * of_line * double(rounds);
}

using Tile = Bf16AttentionLoops<Avx512, AmxAttention>;

// One chunk by `many` if there are rows enough for a tile.
template <Loops::Attention::Chunks Loops::Attention::*kind, Loops::Attention::AttendChunk many>
void attend_chunk(const AttentionStep& step, const AttentionRows& rows, int64_t chunk, AttentionPartial part) {
  const Loops::Attention& few_rows = avx512_vnni_loops().attention;
  (rows.count < AmxAttention::fewest_rows ? (few_rows.*kind).tiles : many)(step, rows, chunk, part);
}

}  // namespace

const Loops& amx_loops() {
  static const Loops loops = [] {
    Loops all = avx512_vnni_loops();
    all.product.pack_panel = PairPacking::pack_panel;
    all.product.tiles.pack_rows = AmxLoops::pack_rows;
    all.product.tiles.pack_columns = AmxLoops::pack_columns;
    all.product.pack_pair_panels = PairPacking::pack_panels;
    all.product.tiles.multiply = AmxLoops::multiply;
    all.quantized.multiply_byte_tiles = AmxQuantizedLoops<ByteTileSide>::multiply;
    all.quantized.multiply_code_tiles = AmxQuantizedLoops<CodeTileSide>::multiply;
    using Attention = Loops::Attention;
    all.attention.plain.tiles = attend_chunk<&Attention::plain, Tile::attend_chunk>;
    all.attention.coded.tiles = attend_chunk<&Attention::coded, Tile::attend_coded_chunk>;
    all.attention.grouped.tiles = attend_chunk<&Attention::grouped, Tile::attend_grouped_chunk>;
    all.attention.backward_bf16 = AmxAttentionBackward::attend_backward;
    all.peak.bf16 = peak<Bf16Tiles, 32>;
    all.peak.int8 = peak<ByteTiles, 64>;
    return all;
  }();
  return loops;
}

}  // namespace easydel::kernels
