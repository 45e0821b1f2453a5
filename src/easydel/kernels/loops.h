// The inner loops of one instruction set. Each loops_<set>.cpp compiles the same templates with its vector type.
#pragma once

#include "easydel/kernels/attention_step.h"
#include "easydel/kernels/code_panels.h"
#include "easydel/kernels/convolution_step.h"
#include "easydel/kernels/dynamic_codes.h"
#include "easydel/kernels/fused.h"
#include "easydel/kernels/isa.h"
#include "easydel/kernels/log_probability.h"
#include "easydel/kernels/low_rank.h"
#include "easydel/kernels/product_plan.h"
#include "easydel/kernels/quantized_layout.h"
#include "easydel/kernels/recurrence_step.h"

namespace easydel::kernels {

struct Loops {
  struct Product {
    // Panel `panel` of W [n, k] from row-major w.
    void (*pack_panel)(Input w, int64_t n, int64_t k, int64_t panel, DType dtype, void* to);
    // The same from codes.
    void (*decode_codes)(const CodePanelsLayout& w, int64_t panel, DType dtype, void* to);
    // A block of the left side: `rows` rows of x, or of its transpose, starting at `first`.
    void (*pack_rows)(Input x, int64_t first, int64_t rows, int64_t k, int64_t padded_k, bool round_to_bf16, float* to);
    void (*pack_columns)(Input x, int64_t first, int64_t columns, int64_t k, float* to);
    // Rows [first, first + rows) of one panel of the result; first is a multiple of block_rows.
    void (*multiply)(const ProductStep& step, int64_t panel, int64_t first, int64_t rows);
    // Panels of bf16 row-major rows [k, n] in the layout that products of pairs and tiles read; `pairs` pairs of k.
    // Null without such products.
    void (*pack_pair_panels)(Input rows, int64_t k, int64_t n, int64_t panel, int64_t panels, int64_t pairs,
                             uint32_t* to) = nullptr;

    // LeftSide::tiles, order bf16_tile. The columns are those of several blocks. Null without tile instructions.
    struct Tiles {
      void (*pack_rows)(Input x, int64_t first, int64_t rows, int64_t k, bf16* to) = nullptr;
      void (*pack_columns)(Input x, int64_t first, int64_t columns, int64_t k, bf16* to) = nullptr;
      void (*multiply)(const ProductStep& step, int64_t panel, int64_t panels, int64_t first, int64_t rows) = nullptr;
    } tiles = {};

    // LeftSide::pairs, order bf16_pairs. Both sides have `pairs` pairs of k, a multiple of 16. The columns are those of
    // several blocks. Null if FMAs are as fast.
    struct Pairs {
      void (*pack_rows)(Input x, int64_t first, int64_t rows, int64_t k, int64_t pairs, uint32_t* to) = nullptr;
      void (*pack_columns)(Input x, int64_t first, int64_t columns, int64_t k, int64_t pairs, uint32_t* to) = nullptr;
      void (*multiply)(const ProductStep& step, int64_t panel, int64_t panels, int64_t first, int64_t rows) = nullptr;
      // Panels of y = x W^T, all rows: step.panels are those of x, step.rows are the bf16 rows of W, in whole blocks of
      // 32 k.
      void (*multiply_weight_rows)(const ProductStep& step, int64_t panel, int64_t panels) = nullptr;
      // Panels of y = x W^T, all rows, at most four, W in codes whose values are normal; its first panel is `before`.
      void (*multiply_codes)(const CodePanelsLayout& w, int64_t before, const ProductStep& step, int64_t panel,
                             int64_t panels) = nullptr;
    } pairs = {};
  } product;

  // Products with quantized weights: packing the left side, multiplying one panel or several.
  struct Quantized {
    void (*pack_byte_row)(const QuantizedStep& step, Input x, int64_t row, int8_t* codes, int32_t* sums, float* scale);
    void (*multiply_bytes)(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows);
    void (*multiply_codes)(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows);
    // What each group of table4 has of a row of x.
    void (*sum_groups)(const QuantizedStep& step, Input x, int64_t row, bool rounded, float* sums);
    // The values of some rows of one panel of table4, to the same number of rows.
    void (*write_values)(const QuantizedStep& step, int64_t first, int64_t rows, Output to);
    // Many rows by tiles, four-bit codes in the order bf16_tile. Null without product.tiles.
    void (*multiply_byte_tiles)(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows) = nullptr;
    void (*multiply_code_tiles)(const QuantizedStep& step, int64_t panel, int64_t first, int64_t rows) = nullptr;
    // Four-bit codes in the order bf16_pairs. Null without product.pairs.
    void (*multiply_code_pairs)(const QuantizedStep& step, int64_t panel, int64_t panels, int64_t first,
                                int64_t rows) = nullptr;
  } quantized;

  struct Attention {
    // One chunk of keys for some rows of queries, in the order fp32_chain, bf16_pairs or bf16_tile.
    using AttendChunk = void (*)(const AttentionStep& step, const AttentionRows& rows, int64_t chunk,
                                 AttentionPartial part);
    struct Chunks {
      AttendChunk fp32, pairs, tiles;
    };
    // Of keys and values that are numbers, codes, or codes whose groups have scales of their own.
    Chunks plain, coded, grouped;
    // Codes of one row x [n] of a plain dtype, and the scales of its `groups` equal parts; see attention.h.
    void (*encode_row)(const void* x, DType dtype, int64_t n, int64_t groups, DType codes, void* to, float* scales);
    // Merges a later chunk's result into the earlier ones, and writes the rows.
    void (*merge)(const AttentionStep& step, int64_t rows, AttentionPartial all, AttentionPartial part);
    void (*finish)(const AttentionStep& step, const AttentionRows& rows, AttentionPartial all);
    // Backward: dots [tokens, heads] of one token, then one task.
    void (*dots)(const AttentionSpec& spec, const AttentionGradient& gradient, int64_t token, float* dots);
    void (*backward)(const AttentionBackwardStep& step, const AttentionBackwardPart& part);
    // By pairs or tiles, if q, k, v and dout are bf16. Null if FMAs are as fast.
    void (*backward_bf16)(const AttentionBackwardStep& step, const AttentionBackwardPart& part) = nullptr;
  } attention;

  // One row of what fused.h describes.
  struct Norms {
    void (*rms)(const NormSpec& spec, Input x, Input weight, int64_t row, int64_t n, Output y, float* rstd);
    void (*rms_backward)(const NormSpec& spec, Input dy, Input x, Input weight, const float* rstd, int64_t row,
                         int64_t n, Output dx, float* dweight);
    void (*layer)(const NormSpec& spec, Input x, Input weight, Input bias, int64_t row, int64_t n, Output y,
                  float* moments);
    void (*layer_backward)(const NormSpec& spec, Input dy, Input x, Input weight, const float* moments, int64_t row,
                           int64_t n, Output dx, float* dweight, float* dbias);
  } norms;

  // One row, head or range of what fused.h and embedding.h describe.
  struct Pointwise {
    void (*rotate)(Heads x, MutableHeads y, int64_t token, int64_t heads, int64_t dim, int64_t pairs, const float* cos,
                   const float* sin, bool interleaved, bool inverse);
    void (*activate)(Activation activation, Input gate, Input up, int64_t row, int64_t n, Output y);
    void (*activate_backward)(Activation activation, Input dy, Input gate, Input up, int64_t row, int64_t n,
                              Output dgate, Output dup, Output y);
    void (*copy_row)(const void* from, DType dtype, int64_t n, void* to, DType to_dtype);
    void (*add_row)(const void* from, DType dtype, int64_t n, float* to);
    void (*sum_rows)(Input a, Input b, int64_t row, int64_t n, Output sum);
    void (*adamw)(const AdamWStep& step, int64_t n, float* parameters, const void* gradient, DType dtype,
                  float* first_moment, float* second_moment, bf16* copy);
    double (*squares)(const void* x, DType dtype, int64_t n);
    double (*squared_differences)(const void* x, DType x_dtype, const void* y, DType y_dtype, int64_t n);
  } pointwise;

  // One block of dynamic_codes.h; encode returns its scale.
  struct Dynamic {
    float (*encode)(const DynamicCodes& map, const float* values, int64_t n, uint8_t* codes);
    void (*decode)(const DynamicCodes& map, const uint8_t* codes, float scale, int64_t n, float* values);
  } dynamic;

  // Rows, or columns of a gradient, of what low_rank.h describes.
  struct LowRank {
    void (*add_product)(const LowRankStep& step, int64_t first, int64_t rows);
    void (*add_scaled)(Input y, Input x, int64_t row, int64_t n, float factor, Output out);
    void (*narrow)(const LowStep& step, int64_t first, int64_t rows);
    void (*gradient)(const float* low, Input x, int64_t first, int64_t m, int64_t k, int64_t rank, float* dw);
    // Of a packed A, in the order bf16_pairs. Null if FMAs are as fast.
    void (*pairs)(const LowStep& step, int64_t first, int64_t rows) = nullptr;
  } low_rank;

  // One row of logits.
  struct Scores {
    void (*cross_entropy)(const CrossEntropySpec& spec, Output logits, int64_t label, int64_t row, int64_t vocabulary,
                          float* loss, float* lse, const float* scales);
    void (*log_probability)(Input logits, int64_t label, int64_t row, int64_t vocabulary, const LogProbabilities& out);
    void (*log_probability_backward)(const LogProbabilityGradient& gradient, Input logits, int64_t label, int64_t row,
                                     int64_t vocabulary, Output dlogits);
  } scores;

  // Some tokens of one head; see recurrence_loops.h.
  struct Recurrence {
    void (*forward)(const RecurrenceStep& step, int64_t begin, int64_t end, float* state, float* o, float* before,
                    float* kept);
    void (*backward)(const RecurrenceStep& step, int64_t begin, int64_t end, const float* before, const float* kept,
                     const float* d_o, const RecurrenceGradients& out, float* d_state, float* slopes);
  } recurrence;

  // One token of a short convolution and of its gradient; sixteen channels of the weight's. See convolution_loops.h.
  struct Convolution {
    void (*forward)(const ConvolutionStep& step, const ConvolutionRange& range, int64_t token, Output y);
    void (*backward)(const ConvolutionStep& step, const ConvolutionRange& range, Input dy, int64_t token, Output dx);
    void (*weight_gradient)(const ConvolutionStep& step, Input dy, int64_t channel, float* dtaps, float* dbias);
  } convolution;

  // See peak_loops.h.
  struct Peak {
    double (*multiply_add)(int64_t rounds, float* keep);
    void (*read)(const float* p, int64_t count, float* keep);
    double (*bf16)(int64_t rounds, float* keep) = nullptr;  // by tiles or pairs; null without them
    double (*int8)(int64_t rounds, float* keep) = nullptr;
  } peak;
};

const Loops& reference_loops();
const Loops& avx2_loops();
const Loops& avx512_loops();
const Loops& avx512_vnni_loops();
void add_pair_loops(Loops& all);  // if the processor has VDPBF16PS and it is faster than FMAs
const Loops& amx_loops();

const Loops& loops();  // of isa()

MatrixInstructions matrix_instructions();  // of loops()

}  // namespace easydel::kernels
