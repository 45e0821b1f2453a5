// Operations between products and attention, each in one sweep over memory: norms, rotary positions, gated activations,
// the loss, the optimizer. Statistics and sums are fp32 and a bf16 result is rounded once, unless stated otherwise. A
// row has the same bits on every instruction set, with any other rows and on any number of threads; sums over rows have
// a fixed order of their own. Results may overwrite inputs element by element.
#pragma once

#include <cstdint>

#include "easydel/kernels/attention.h"
#include "easydel/kernels/dtype.h"
#include "easydel/kernels/executor.h"

namespace easydel::kernels {

// ---- norms ----

struct NormSpec {
  float eps = 1e-6f;
  float weight_offset = 0;  // 1: the stored weight is its difference from 1 (gemma)
  // the normalized value is rounded to x's dtype before it is multiplied by the weight (llama)
  bool round_before_weight = false;
};

// y [rows, n] = x rsqrt(mean(x^2) + eps) (weight + offset), arXiv 1910.07467. weight [n] may have no data. rstd [rows]
// (may be null) gets each row's factor.
void rms_norm(Executor& executor, const NormSpec& spec, Input x, Input weight, int64_t rows, int64_t n, Output y,
              float* rstd);

// dx, and dweight [n] fp32 (may be null), which is accumulated into.
void rms_norm_backward(Executor& executor, const NormSpec& spec, Input dy, Input x, Input weight, const float* rstd,
                       int64_t rows, int64_t n, Output dx, float* dweight);

// y = (x - mean) rsqrt(variance + eps) (weight + offset) + bias, arXiv 1607.06450; weight and bias are optional.
// moments [rows, 2] (may be null) gets mean and rstd.
void layer_norm(Executor& executor, const NormSpec& spec, Input x, Input weight, Input bias, int64_t rows, int64_t n,
                Output y, float* moments);
void layer_norm_backward(Executor& executor, const NormSpec& spec, Input dy, Input x, Input weight,
                         const float* moments, int64_t rows, int64_t n, Output dx, float* dweight, float* dbias);

// With a residual, in one sweep: sum = x + residual, rounded to sum's dtype, and y = norm(sum). The backward adds dsum,
// the gradient from the sum's other readers, to the norm's. Both have the bits of the two separate steps.
void add_rms_norm(Executor& executor, const NormSpec& spec, Input x, Input residual, Input weight, int64_t rows,
                  int64_t n, Output sum, Output y, float* rstd);
void add_rms_norm_backward(Executor& executor, const NormSpec& spec, Input dy, Input dsum, Input sum, Input weight,
                           const float* rstd, int64_t rows, int64_t n, Output dx, float* dweight);
void add_layer_norm(Executor& executor, const NormSpec& spec, Input x, Input residual, Input weight, Input bias,
                    int64_t rows, int64_t n, Output sum, Output y, float* moments);
void add_layer_norm_backward(Executor& executor, const NormSpec& spec, Input dy, Input dsum, Input sum, Input weight,
                             const float* moments, int64_t rows, int64_t n, Output dx, float* dweight, float* dbias);

// ---- rotary positions (arXiv 2104.09864) ----

// y [tokens, heads, dim] is x with the first 2 x pairs elements of every head rotated: element i with i + pairs, or
// with its neighbor if `interleaved`. y may be x, or rows of a cache. cos and sin are [tokens, pairs] fp32; their rows
// are table_stride apart. `inverse` rotates back, which is the gradient.
void rotate(Executor& executor, Heads x, MutableHeads y, int64_t tokens, int64_t heads, int64_t dim, int64_t pairs,
            const float* cos, const float* sin, int64_t table_stride, bool interleaved, bool inverse);

// ---- activations ----

enum class Activation { silu, gelu, gelu_tanh, sigmoid, tanh, mish, exp };  // gelu: by the error function

// y [rows, n] = act(gate) up (arXiv 2002.05202), or act(gate) if up.data is null.
void activate(Executor& executor, Activation activation, Input gate, Input up, int64_t rows, int64_t n, Output y);
// dgate, and dup if there is an up. If y has data, it gets the result of activate().
void activate_backward(Executor& executor, Activation activation, Input dy, Input gate, Input up, int64_t rows,
                       int64_t n, Output dgate, Output dup, Output y = {});

// ---- loss ----

struct CrossEntropySpec {
  int64_t ignore_label = -100;
  float label_smoothing = 0;  // e: the label has weight 1 - e, and every entry e / vocabulary
  float z_loss = 0;           // z lse^2 is added
};

// For each row of logits [rows, vocabulary]: loss [rows] and lse [rows], both 0 if the label is ignored. If scales is
// not null ([rows]: derivative of the objective by the row's loss), the logits are replaced by their gradient, 0 for an
// ignored row. Other labels outside the vocabulary are a Bug.
void cross_entropy(Executor& executor, const CrossEntropySpec& spec, Output logits, const int64_t* labels, int64_t rows,
                   int64_t vocabulary, float* loss, float* lse, const float* scales);

// ---- optimizer ----

struct AdamW {  // arXiv 1711.05101, as torch.optim.AdamW
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  int64_t step = 1;      // number of this update; the first is 1
  float grad_scale = 1;  // multiplies the gradient first (clipping)
};

// One update of n parameters, all fp32 except the gradient, which may be bf16. copy (may be null) gets the new
// parameters in bf16.
void adamw(Executor& executor, const AdamW& spec, int64_t n, float* parameters, const void* gradient,
           DType gradient_dtype, float* first_moment, float* second_moment, bf16* copy);

// The constants of one update, and the same update of some of its elements by the calling thread.
struct AdamWStep {
  explicit AdamWStep(const AdamW& spec);
  float decay, one_minus_beta1, beta2, one_minus_beta2, root_of_correction2, eps, step_size, grad_scale;
};
void adamw(const AdamWStep& step, int64_t n, float* parameters, const void* gradient, DType gradient_dtype,
           float* first_moment, float* second_moment, bf16* copy);

// Sum of squares in double precision, in an order that depends on n alone.
double sum_of_squares(Executor& executor, const void* x, DType dtype, int64_t n);
// The same of the fp32 differences x - y.
double sum_of_squared_differences(Executor& executor, const void* x, DType x_dtype, const void* y, DType y_dtype,
                                  int64_t n);

}  // namespace easydel::kernels
