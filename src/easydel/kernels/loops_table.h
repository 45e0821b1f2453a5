// The table of one vector type. Included by loops_<set>.cpp only.
#pragma once

#include "easydel/kernels/attention_backward_loops.h"
#include "easydel/kernels/attention_loops.h"
#include "easydel/kernels/attention_pair_loops.h"
#include "easydel/kernels/attention_tile_loops.h"
#include "easydel/kernels/convolution_loops.h"
#include "easydel/kernels/loops.h"
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
  using Norm = NormLoops<V>;
  using Pointwise = PointwiseLoops<V>;
  return {
      .pack_panel = Product::pack_panel,
      .pack_rows = Product::pack_rows,
      .pack_columns = Product::pack_columns,
      .multiply = Product::multiply,
      .pack_tile_rows = nullptr,
      .pack_tile_columns = nullptr,
      .multiply_tiles = nullptr,
      .pack_pair_rows = nullptr,
      .pack_pair_columns = nullptr,
      .pack_pair_panels = nullptr,
      .multiply_pairs = nullptr,
      .multiply_pair_rows = nullptr,
      .pack_byte_row = Bytes::pack_row,
      .multiply_bytes = Bytes::multiply,
      .multiply_codes = CodeLoops<V>::multiply,
      .multiply_byte_tiles = nullptr,
      .multiply_code_tiles = nullptr,
      .multiply_code_pairs = nullptr,
      .attend_chunk = Attention::attend_chunk,
      .attend_chunk_pairs = Bf16AttentionLoops<V, PairAttention<V, FmaPairs<V>>>::attend_chunk,
      .attend_chunk_tiles = Bf16AttentionLoops<V, TileAttention<V>>::attend_chunk,
      .merge_attention = Attention::merge,
      .finish_attention = Attention::finish,
      .attention_dots = AttentionBackwardLoops<V>::dots,
      .attend_backward = AttentionBackwardLoops<V>::attend_backward,
      .attend_backward_pairs = nullptr,
      .rms_norm = Norm::rms_norm,
      .rms_norm_backward = Norm::rms_norm_backward,
      .layer_norm = Norm::layer_norm,
      .layer_norm_backward = Norm::layer_norm_backward,
      .rotate = Pointwise::rotate_heads,
      .activate = Pointwise::activate,
      .activate_backward = Pointwise::activate_backward,
      .cross_entropy = Pointwise::cross_entropy,
      .log_probability = Pointwise::log_probability,
      .log_probability_backward = Pointwise::log_probability_backward,
      .copy_row = Pointwise::copy_row,
      .add_row = Pointwise::add_row,
      .sum_rows = Pointwise::sum_rows,
      .adamw = Pointwise::adamw_untyped,
      .squares = Pointwise::squares_untyped,
      .recur = RecurrenceLoops<V>::recur,
      .recur_back = RecurrenceLoops<V>::recur_back,
      .convolve = ConvolutionLoops<V>::convolve,
      .convolve_back = ConvolutionLoops<V>::convolve_back,
      .convolution_sums = ConvolutionLoops<V>::convolution_sums,
      .peak_multiply_add = PeakLoops<V>::multiply_add,
      .peak_read = PeakLoops<V>::read,
      .peak_bf16 = nullptr,
      .peak_int8 = nullptr,
  };
}

}  // namespace easydel::kernels
