// Cuts the loops of low_rank_loops.h into tasks.
#include "easydel/kernels/low_rank.h"

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/row_tasks.h"

namespace easydel::kernels {

void add_narrow_product(Executor& executor, Input y, const float* low, int64_t low_stride, const PackedWeight& b,
                        int64_t m, float factor, Output out) {
  check(b.dtype() == DType::f32, "narrow product: the weight is not packed in fp32");
  const LowRankStep step{y, low, low_stride, reinterpret_cast<const float*>(b.data()), b.n(), b.k(), factor, out};
  run_row_ranges(executor, m, b.n() * (2 + b.k() / 4),
                 [&](int64_t begin, int64_t end) { loops().low_rank.add_product(step, begin, end - begin); });
}

void add_scaled(Executor& executor, Input y, Input x, int64_t m, int64_t n, float factor, Output out) {
  run_rows(executor, m, n, [&](int64_t row) { loops().low_rank.add_scaled(y, x, row, n, factor, out); });
}

void narrow_product(Executor& executor, Input x, const float* a, int64_t m, int64_t k, int64_t rank, float factor,
                    float* low) {
  check(is_narrow(rank), "narrow product: the rank is ", rank);
  run_row_ranges(executor, m, k, [&](int64_t begin, int64_t end) {
    loops().low_rank.narrow(x, a, begin, end - begin, k, rank, factor, low);
  });
}

void narrow_gradient(Executor& executor, const float* low, Input x, int64_t m, int64_t k, int64_t rank, float* dw) {
  check(is_narrow(rank), "narrow gradient: the rank is ", rank);
  constexpr int64_t columns = 2 * 16;
  run_rows(executor, divide_up(k, columns), m * columns,
           [&](int64_t part) { loops().low_rank.gradient(low, x, part * columns, m, k, rank, dw); });
}

}  // namespace easydel::kernels
