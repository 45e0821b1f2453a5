// Cuts the fused kernels into tasks of rows; norm_loops.h and pointwise_loops.h process a row.
#include "easydel/kernels/fused.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/row_tasks.h"

namespace easydel::kernels {

namespace {

// As run_rows if rows also add to sums of n columns: each(row, sums), with `count` such vectors per group of 64 rows.
// The groups' sums are then added to `totals` in ascending order.
template <class Each>
void over_rows_with_sums(Executor& executor, int64_t rows, int64_t n, std::initializer_list<float*> totals,
                         const Each& each) {
  constexpr int64_t group = 64;
  const int64_t groups = divide_up(rows, group), count = int64_t(totals.size());
  thread_local Scratch<float> of_caller;
  float* const sums = of_caller.at_least(groups * count * n);
  executor.run(groups, [&](int64_t g) {
    float* const own = sums + g * count * n;
    std::memset(own, 0, size_t(count * n) * sizeof(float));
    for (int64_t r = g * group; r < std::min(rows, (g + 1) * group); ++r) each(r, own);
  });
  int64_t which = 0;
  for (float* const total : totals) {
    if (total)
      run_rows(executor, n, groups, [&](int64_t i) {
        float sum = 0;
        for (int64_t g = 0; g < groups; ++g) sum += sums[(g * count + which) * n + i];
        total[i] += sum;
      });
    ++which;
  }
}

// The sum of part(first, count) over parts that depend on n alone.
template <class Part>
double sum_of_parts(Executor& executor, int64_t n, const Part& part) {
  constexpr int64_t elements_per_sum = 1 << 15;  // decides bits
  const int64_t parts = divide_up(n, elements_per_sum);
  thread_local Scratch<double> of_caller;
  double* const sums = of_caller.at_least(parts);
  executor.run(parts, [&](int64_t i) {
    sums[i] = part(i * elements_per_sum, std::min(elements_per_sum, n - i * elements_per_sum));
  });
  double sum = 0;
  for (int64_t i = 0; i < parts; ++i) sum += sums[i];
  return sum;
}

}  // namespace

void rms_norm(Executor& executor, const NormSpec& spec, Input x, Input weight, int64_t rows, int64_t n, Output y,
              float* rstd) {
  const Loops& isa = loops();
  run_rows(executor, rows, n, [&](int64_t row) { isa.norms.rms(spec, x, weight, row, n, y, rstd); });
}

void rms_norm_backward(Executor& executor, const NormSpec& spec, Input dy, Input x, Input weight, const float* rstd,
                       int64_t rows, int64_t n, Output dx, float* dweight) {
  const Loops& isa = loops();
  over_rows_with_sums(executor, rows, n, {dweight}, [&](int64_t row, float* sums) {
    isa.norms.rms_backward(spec, dy, x, weight, rstd, row, n, dx, dweight ? sums : nullptr);
  });
}

void layer_norm(Executor& executor, const NormSpec& spec, Input x, Input weight, Input bias, int64_t rows, int64_t n,
                Output y, float* moments) {
  const Loops& isa = loops();
  run_rows(executor, rows, n, [&](int64_t row) { isa.norms.layer(spec, x, weight, bias, row, n, y, moments); });
}

void layer_norm_backward(Executor& executor, const NormSpec& spec, Input dy, Input x, Input weight,
                         const float* moments, int64_t rows, int64_t n, Output dx, float* dweight, float* dbias) {
  const Loops& isa = loops();
  over_rows_with_sums(executor, rows, n, {dweight, dbias}, [&](int64_t row, float* sums) {
    isa.norms.layer_backward(spec, dy, x, weight, moments, row, n, dx, dweight ? sums : nullptr,
                             dbias ? sums + n : nullptr);
  });
}

void add_rms_norm(Executor& executor, const NormSpec& spec, Input x, Input residual, Input weight, int64_t rows,
                  int64_t n, Output sum, Output y, float* rstd) {
  const Loops& isa = loops();
  run_rows(executor, rows, n, [&](int64_t row) {
    isa.pointwise.sum_rows(x, residual, row, n, sum);
    isa.norms.rms(spec, sum, weight, row, n, y, rstd);
  });
}

void add_rms_norm_backward(Executor& executor, const NormSpec& spec, Input dy, Input dsum, Input sum, Input weight,
                           const float* rstd, int64_t rows, int64_t n, Output dx, float* dweight) {
  const Loops& isa = loops();
  over_rows_with_sums(executor, rows, n, {dweight}, [&](int64_t row, float* sums) {
    isa.norms.rms_backward(spec, dy, sum, weight, rstd, row, n, dx, dweight ? sums : nullptr);
    isa.pointwise.sum_rows(dx, dsum, row, n, dx);
  });
}

void add_layer_norm(Executor& executor, const NormSpec& spec, Input x, Input residual, Input weight, Input bias,
                    int64_t rows, int64_t n, Output sum, Output y, float* moments) {
  const Loops& isa = loops();
  run_rows(executor, rows, n, [&](int64_t row) {
    isa.pointwise.sum_rows(x, residual, row, n, sum);
    isa.norms.layer(spec, sum, weight, bias, row, n, y, moments);
  });
}

void add_layer_norm_backward(Executor& executor, const NormSpec& spec, Input dy, Input dsum, Input sum, Input weight,
                             const float* moments, int64_t rows, int64_t n, Output dx, float* dweight, float* dbias) {
  const Loops& isa = loops();
  over_rows_with_sums(executor, rows, n, {dweight, dbias}, [&](int64_t row, float* sums) {
    isa.norms.layer_backward(spec, dy, sum, weight, moments, row, n, dx, dweight ? sums : nullptr,
                             dbias ? sums + n : nullptr);
    isa.pointwise.sum_rows(dx, dsum, row, n, dx);
  });
}

void rotate(Executor& executor, Heads x, MutableHeads y, int64_t tokens, int64_t heads, int64_t dim, int64_t pairs,
            const float* cos, const float* sin, int64_t table_stride, bool interleaved, bool inverse) {
  check(x.dtype == y.dtype, "rotate: another number type");
  const Loops& isa = loops();
  run_rows(executor, tokens, heads * dim, [&](int64_t token) {
    isa.pointwise.rotate(x, y, token, heads, dim, pairs, cos + token * table_stride, sin + token * table_stride,
                         interleaved, inverse);
  });
}

void activate(Executor& executor, Activation activation, Input gate, Input up, int64_t rows, int64_t n, Output y) {
  const Loops& isa = loops();
  run_rows(executor, rows, n, [&](int64_t row) { isa.pointwise.activate(activation, gate, up, row, n, y); });
}

void activate_backward(Executor& executor, Activation activation, Input dy, Input gate, Input up, int64_t rows,
                       int64_t n, Output dgate, Output dup, Output y) {
  const Loops& isa = loops();
  run_rows(executor, rows, n,
           [&](int64_t row) { isa.pointwise.activate_backward(activation, dy, gate, up, row, n, dgate, dup, y); });
}

void cross_entropy(Executor& executor, const CrossEntropySpec& spec, Output logits, const int64_t* labels, int64_t rows,
                   int64_t vocabulary, float* loss, float* lse, const float* scales) {
  for (int64_t r = 0; r < rows; ++r)
    check(labels[r] == spec.ignore_label || (labels[r] >= 0 && labels[r] < vocabulary), "cross_entropy: label ",
          labels[r], " of row ", r, " is outside the vocabulary of ", vocabulary);
  const Loops& isa = loops();
  run_rows(executor, rows, vocabulary, [&](int64_t row) {
    isa.scores.cross_entropy(spec, logits, labels[row], row, vocabulary, loss, lse, scales);
  });
}

AdamWStep::AdamWStep(const AdamW& spec)
    : decay(float(1 - spec.learning_rate * spec.weight_decay)),
      one_minus_beta1(float(1 - spec.beta1)),
      beta2(float(spec.beta2)),
      one_minus_beta2(float(1 - spec.beta2)),
      root_of_correction2(float(std::sqrt(1 - std::pow(spec.beta2, double(spec.step))))),
      eps(float(spec.eps)),
      step_size(float(spec.learning_rate / (1 - std::pow(spec.beta1, double(spec.step))))),
      grad_scale(spec.grad_scale) {}

void adamw(const AdamWStep& step, int64_t n, float* parameters, const void* gradient, DType gradient_dtype,
           float* first_moment, float* second_moment, bf16* copy) {
  loops().pointwise.adamw(step, n, parameters, gradient, gradient_dtype, first_moment, second_moment, copy);
}

void adamw(Executor& executor, const AdamW& spec, int64_t n, float* parameters, const void* gradient,
           DType gradient_dtype, float* first_moment, float* second_moment, bf16* copy) {
  const AdamWStep step(spec);
  run_row_ranges(executor, n, 1, [&](int64_t i, int64_t end) {
    adamw(step, end - i, parameters + i, static_cast<const char*>(gradient) + i * bytes_of(gradient_dtype),
          gradient_dtype, first_moment + i, second_moment + i, copy ? copy + i : nullptr);
  });
}

double sum_of_squares(Executor& executor, const void* x, DType dtype, int64_t n) {
  const Loops& isa = loops();
  return sum_of_parts(executor, n, [&](int64_t i, int64_t count) {
    return isa.pointwise.squares(static_cast<const char*>(x) + i * bytes_of(dtype), dtype, count);
  });
}

double sum_of_squared_differences(Executor& executor, const void* x, DType x_dtype, const void* y, DType y_dtype,
                                  int64_t n) {
  const Loops& isa = loops();
  return sum_of_parts(executor, n, [&](int64_t i, int64_t count) {
    return isa.pointwise.squared_differences(static_cast<const char*>(x) + i * bytes_of(x_dtype), x_dtype,
                                             static_cast<const char*>(y) + i * bytes_of(y_dtype), y_dtype, count);
  });
}

}  // namespace easydel::kernels
