// The table of one vector type. Included by loops_<set>.cpp only.
#pragma once

#include "easydel/kernels/attention_backward_loops.h"
#include "easydel/kernels/attention_loops.h"
#include "easydel/kernels/attention_pair_loops.h"
#include "easydel/kernels/attention_tile_loops.h"
#include "easydel/kernels/code_panel_loops.h"
#include "easydel/kernels/code_value_loops.h"
#include "easydel/kernels/convolution_loops.h"
#include "easydel/kernels/dynamic_code_loops.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/low_rank_loops.h"
#include "easydel/kernels/norm_loops.h"
#include "easydel/kernels/peak_loops.h"
#include "easydel/kernels/pointwise_loops.h"
#include "easydel/kernels/product_loops.h"
#include "easydel/kernels/quantized_loops.h"
#include "easydel/kernels/recurrence_loops.h"

namespace easydel::kernels {

template <class V, class D>
constexpr Loops make_loops() {
  using Product = ProductLoops<V>;
  using Bytes = ByteLoops<V, D>;
  using Attention = AttentionLoops<V>;
  using Pairs = Bf16AttentionLoops<V, PairAttention<V, FmaPairs<V>>>;
  using Tile = Bf16AttentionLoops<V, TileAttention<V>>;
  using Norm = NormLoops<V>;
  using Pointwise = PointwiseLoops<V>;
  using Dynamic = DynamicCodeLoops<V>;
  using LowRank = LowRankLoops<V>;
  return {
      .product = {.pack_panel = Product::pack_panel,
                  .decode_codes = CodePanelLoops<V>::decode,
                  .pack_rows = Product::pack_rows,
                  .pack_columns = Product::pack_columns,
                  .multiply = Product::multiply},
      .quantized = {.pack_byte_row = Bytes::pack_row,
                    .multiply_bytes = Bytes::multiply,
                    .multiply_codes = CodeLoops<V>::multiply,
                    .sum_groups = CodeLoops<V>::sum_groups,
                    .write_values = CodeValueLoops<V>::write},
      .attention = {.plain = {Attention::template attend_chunk<PlainBlocks<V, float>>, Pairs::attend_chunk,
                              Tile::attend_chunk},
                    .coded = {Attention::template attend_chunk<CodedBlocks<V, float>>, Pairs::attend_coded_chunk,
                              Tile::attend_coded_chunk},
                    .grouped = {Attention::template attend_chunk<GroupedBlocks<V, float>>, Pairs::attend_grouped_chunk,
                                Tile::attend_grouped_chunk},
                    .encode_row = CodeRows<V>::encode_row,
                    .merge = Attention::merge,
                    .finish = Attention::finish,
                    .dots = AttentionBackwardLoops<V>::dots,
                    .backward = AttentionBackwardLoops<V>::attend_backward},
      .norms = {.rms = Norm::rms_norm,
                .rms_backward = Norm::rms_norm_backward,
                .layer = Norm::layer_norm,
                .layer_backward = Norm::layer_norm_backward},
      .pointwise = {.rotate = Pointwise::rotate_heads,
                    .activate = Pointwise::activate,
                    .activate_backward = Pointwise::activate_backward,
                    .copy_row = Pointwise::copy_row,
                    .add_row = Pointwise::add_row,
                    .sum_rows = Pointwise::sum_rows,
                    .adamw = Pointwise::adamw_untyped,
                    .squares = Pointwise::squares_untyped,
                    .squared_differences = Pointwise::squared_differences},
      .dynamic = {.encode = Dynamic::encode, .decode = Dynamic::decode},
      .low_rank = {.add_product = LowRank::add_product,
                   .add_scaled = LowRank::add_scaled,
                   .narrow = LowRank::narrow,
                   .gradient = LowRank::gradient},
      .scores = {.cross_entropy = Pointwise::cross_entropy,
                 .log_probability = Pointwise::log_probability,
                 .log_probability_backward = Pointwise::log_probability_backward},
      .recurrence = {.forward = RecurrenceLoops<V>::recur, .backward = RecurrenceLoops<V>::recur_back},
      .convolution = {.forward = ConvolutionLoops<V>::convolve,
                      .backward = ConvolutionLoops<V>::convolve_back,
                      .weight_gradient = ConvolutionLoops<V>::convolution_sums},
      .peak = {.multiply_add = PeakLoops<V>::multiply_add, .read = PeakLoops<V>::read},
  };
}

}  // namespace easydel::kernels
