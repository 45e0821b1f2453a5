// The inner loops of one instruction set. Each loops_<set>.cpp compiles the same templates with its vector type.
#pragma once

#include "easydel/kernels/attention_step.h"
#include "easydel/kernels/convolution_step.h"
#include "easydel/kernels/fused.h"
#include "easydel/kernels/isa.h"
#include "easydel/kernels/log_probability.h"
#include "easydel/kernels/product_layout.h"
#include "easydel/kernels/quantized_layout.h"
#include "easydel/kernels/recurrence_step.h"

namespace easydel::kernels {

// The optimizer's step in the numbers of its arithmetic.
struct AdamWStep {
  float decay, one_minus_beta1, beta2, one_minus_beta2, root_of_correction2, eps, step_size, grad_scale;
};

struct Loops {
  // Panel `panel` of W [n, k] from row-major w.
  void (*pack_panel)(Input w, int64_t n, int64_t k, int64_t panel, Number number, void* to);
  // A block of the left side: `rows` rows of x from `first`, or of its transpose.
  void (*pack_rows)(Input x, int64_t first, int64_t rows, int64_t k, int64_t padded_k, bool round_to_bf16, float* to);
  void (*pack_columns)(Input x, int64_t first, int64_t columns, int64_t k, float* to);
  // Rows [first, first + rows) of one panel of the result; first is a multiple of block_rows.
  void (*multiply)(const ProductStep& step, int64_t panel, int64_t first, int64_t rows);

  // The same for tile instructions, order bf16_tile; columns are those of several blocks. Null where there are none.
  void (*pack_tile_rows)(Input x, int64_t first, int64_t rows, int64_t k, bf16* to) = nullptr;
  void (*pack_tile_columns)(Input x, int64_t first, int64_t columns, int64_t k, bf16* to) = nullptr;
  void (*multiply_tiles)(const ProductStep& step, int64_t panel, int64_t panels, int64_t first, int64_t rows) = nullptr;

  // The same by pairs of k, of which both sides have `pairs`, a multiple of 16: order bf16_pairs. Columns are those of
  // several blocks; panels are made of row-major rows [k, n] of bf16, for tiles too. Null where FMAs are as good.
  void (*pack_pair_rows)(Input x, int64_t first, int64_t rows, int64_t k, int64_t pairs, uint32_t* to) = nullptr;
  void (*pack_pair_columns)(Input x, int64_t first, int64_t columns, int64_t k, int64_t pairs, uint32_t* to) = nullptr;
  void (*pack_pair_panels)(Input rows, int64_t k, int64_t n, int64_t panel, int64_t panels, int64_t pairs,
                           uint32_t* to) = nullptr;
  void (*multiply_pairs)(const ProductStep& step, int64_t panel, int64_t panels, int64_t first, int64_t rows) = nullptr;
  // Panels of y = x W^T, all rows: step.panels are those of x, step.rows are W's of bf16, of whole blocks of 32 k.
  void (*multiply_pair_rows)(const ProductStep& step, int64_t panel, int64_t panels) = nullptr;

  // The left side and a panel of a product with a quantized weight.
  void (*pack_byte_row)(const QuantizedStep& step, Input x, int64_t row, int8_t* codes, int32_t* sums, float* scale);
  void (*multiply_bytes)(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows);
  void (*multiply_codes)(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows);

  // Many rows by tiles, codes in the order bf16_tile; null where multiply_tiles is.
  void (*multiply_byte_tiles)(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows) = nullptr;
  void (*multiply_code_tiles)(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows) = nullptr;

  // Panels of four-bit codes in the order bf16_pairs; null where multiply_pairs is.
  void (*multiply_code_pairs)(const QuantizedStep& step, int64_t panel, int64_t panels, int64_t first,
                              int64_t rows) = nullptr;

  // One chunk of keys for some rows, in each order; the result of a later chunk joined to an earlier one's; the rows
  // written.
  void (*attend_chunk)(const AttentionStep& step, const AttentionRows& rows, int64_t chunk, AttentionPartial part);
  void (*attend_chunk_pairs)(const AttentionStep& step, const AttentionRows& rows, int64_t chunk,
                             AttentionPartial part);  // order bf16_pairs
  void (*attend_chunk_tiles)(const AttentionStep& step, const AttentionRows& rows, int64_t chunk,
                             AttentionPartial part);  // order bf16_tile
  void (*merge_attention)(const AttentionStep& step, int64_t rows, AttentionPartial all, AttentionPartial part);
  void (*finish_attention)(const AttentionStep& step, const AttentionRows& rows, AttentionPartial all);

  // dots [tokens, heads] of one token; one part of the backward.
  void (*attention_dots)(const AttentionSpec& spec, const AttentionGradient& gradient, int64_t token, float* dots);
  void (*attend_backward)(const AttentionBackwardStep& step, const AttentionBackwardPart& part);
  // The same by pairs or tiles, where q, k, v and dout are bf16; null where FMAs are as good.
  void (*attend_backward_pairs)(const AttentionBackwardStep& step, const AttentionBackwardPart& part) = nullptr;

  // One row, head or stretch of what fused.h describes.
  void (*rms_norm)(const NormSpec& spec, Input x, Input weight, int64_t row, int64_t n, Output y, float* rstd);
  void (*rms_norm_backward)(const NormSpec& spec, Input dy, Input x, Input weight, const float* rstd, int64_t row,
                            int64_t n, Output dx, float* dweight);
  void (*layer_norm)(const NormSpec& spec, Input x, Input weight, Input bias, int64_t row, int64_t n, Output y,
                     float* moments);
  void (*layer_norm_backward)(const NormSpec& spec, Input dy, Input x, Input weight, const float* moments, int64_t row,
                              int64_t n, Output dx, float* dweight, float* dbias);
  void (*rotate)(Heads x, MutableHeads y, int64_t token, int64_t heads, int64_t dim, int64_t pairs, const float* cos,
                 const float* sin, bool interleaved, bool inverse);
  void (*activate)(Activation activation, Input gate, Input up, int64_t row, int64_t n, Output y);
  void (*activate_backward)(Activation activation, Input dy, Input gate, Input up, int64_t row, int64_t n, Output dgate,
                            Output dup, Output y);
  void (*cross_entropy)(const CrossEntropySpec& spec, Output logits, int64_t label, int64_t row, int64_t vocabulary,
                        float* loss, float* lse, const float* scales);
  void (*log_probability)(Input logits, int64_t label, int64_t row, int64_t vocabulary, const LogProbabilities& out);
  void (*log_probability_backward)(const LogProbabilityGradient& gradient, Input logits, int64_t label, int64_t row,
                                   int64_t vocabulary, Output dlogits);
  void (*copy_row)(const void* from, Number number, int64_t n, void* to, Number to_number);
  void (*add_row)(const void* from, Number number, int64_t n, float* to);
  void (*sum_rows)(Input a, Input b, int64_t row, int64_t n, Output sum);
  void (*adamw)(const AdamWStep& step, int64_t n, float* parameters, const void* gradient, Number number,
                float* first_moment, float* second_moment, bf16* copy);
  double (*squares)(const void* x, Number number, int64_t n);

  // Some tokens of one head, and back; see recurrence_loops.h.
  void (*recur)(const RecurrenceStep& step, int64_t begin, int64_t end, float* state, float* o, float* before,
                float* kept);
  void (*recur_back)(const RecurrenceStep& step, int64_t begin, int64_t end, const float* before, const float* kept,
                     const float* d_o, const RecurrenceGradients& out, float* d_state, float* slopes);

  // One token of a short convolution, and of its gradient; sixteen channels of the weight's. See convolution_loops.h.
  void (*convolve)(const ConvolutionStep& step, const ConvolutionRange& range, int64_t token, Output y);
  void (*convolve_back)(const ConvolutionStep& step, const ConvolutionRange& range, Input dy, int64_t token, Output dx);
  void (*convolution_sums)(const ConvolutionStep& step, Input dy, int64_t channel, float* dtaps, float* dbias);

  // See peak_loops.h.
  double (*peak_multiply_add)(int64_t rounds, float* keep);
  void (*peak_read)(const float* p, int64_t count, float* keep);
  double (*peak_bf16)(int64_t rounds, float* keep) = nullptr;  // by tiles or pairs; null where there are none
  double (*peak_int8)(int64_t rounds, float* keep) = nullptr;
};

const Loops& reference_loops();
const Loops& avx2_loops();
const Loops& avx512_loops();
const Loops& avx512_vnni_loops();
void add_pair_loops(Loops& all);  // where the processor has VDPBF16PS and gains by it
const Loops& amx_loops();

const Loops& loops();  // of isa()

// How loops() multiply by each other what is in these types where both are read as they are, as gradients are.
Left left_of_gradient(Input left, Input right);

}  // namespace easydel::kernels
