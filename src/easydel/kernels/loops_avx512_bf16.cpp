// The loops for AVX-512 with VNNI that need VDPBF16PS, too.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"

// g++ 12 warns of the undefined registers in its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16,fma")
#include "easydel/kernels/attention_backward_pairs.h"
#include "easydel/kernels/attention_byte_loops.h"
#include "easydel/kernels/attention_pair_loops.h"
#include "easydel/kernels/code_pair_loops.h"
#include "easydel/kernels/code_panel_pairs.h"
#include "easydel/kernels/low_rank_pairs.h"
#include "easydel/kernels/pair_loops.h"
#include "easydel/kernels/pair_row_loops.h"
#include "easydel/kernels/simd_avx512_bf16.h"

namespace easydel::kernels {

void add_pair_loops(Loops& all) {
  if (!has_fast_pairs()) return;
  all.product.pack_panel = PairLoops::pack_panel;
  all.product.pairs.pack_rows = PairLoops::pack_rows;
  all.product.pairs.pack_columns = PairLoops::pack_columns;
  all.product.pack_pair_panels = PairLoops::pack_panels;
  all.product.pairs.multiply = PairLoops::multiply;
  all.product.pairs.multiply_weight_rows = PairRowLoops::multiply;
  all.product.pairs.multiply_codes = CodePanelPairs::multiply;
  all.quantized.multiply_code_pairs = CodePairLoops::multiply;
  using Pairs = PairAttention<Avx512, Avx512Pairs>;
  all.attention.plain.pairs = Bf16AttentionLoops<Avx512, Pairs>::attend_chunk;
  all.attention.coded.pairs = attend_byte_chunk<Pairs, Bf16AttentionLoops<Avx512, Pairs>::attend_coded_chunk>;
  all.attention.grouped.pairs = Bf16AttentionLoops<Avx512, Pairs>::attend_grouped_chunk;
  all.attention.backward_bf16 = AttentionBackwardPairs::attend_backward;
  all.low_rank.pairs = LowRankPairs::multiply;
  all.peak.bf16 = PairLoops::peak;
}

}  // namespace easydel::kernels
