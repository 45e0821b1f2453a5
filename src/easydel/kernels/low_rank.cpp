// Cuts the loops of low_rank_loops.h into tasks.
#include "easydel/kernels/low_rank.h"

#include <algorithm>
#include <vector>

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

void add_low_ranks(Executor& executor, std::span<const LowRankRows> runs, Input x, int64_t k, float* low, int64_t rank,
                   Input y, Output out) {
  struct Task {
    const LowRankRows* run;
    int64_t begin, end;
  };
  std::vector<Task> tasks;
  for (const LowRankRows& run : runs) {
    check(run.b->dtype() == DType::f32 && run.b->k() <= rank && (!run.a || is_narrow(rank)), "low ranks: B is [",
          run.b->n(), ", ", run.b->k(), "], the rank ", rank);
    const int64_t rows = rows_per_task(run.b->n() * (2 + run.b->k() / 4) + (run.a ? k : 0));
    for (int64_t begin = run.begin; begin < run.end; begin += rows)
      tasks.push_back({&run, begin, std::min(run.end, begin + rows)});
  }
  executor.run(int64_t(tasks.size()), [&](int64_t index) {
    const auto& [run, begin, end] = tasks[size_t(index)];
    if (run->a) loops().low_rank.narrow(x, run->a, begin, end - begin, k, rank, run->sign, low);
    const PackedWeight& b = *run->b;
    const LowRankStep step{y, low, rank, reinterpret_cast<const float*>(b.data()), b.n(), b.k(), run->factor, out};
    loops().low_rank.add_product(step, begin, end - begin);
  });
}

void narrow_gradient(Executor& executor, const float* low, Input x, int64_t m, int64_t k, int64_t rank, float* dw) {
  check(is_narrow(rank), "narrow gradient: the rank is ", rank);
  constexpr int64_t columns = 2 * 16;
  run_rows(executor, divide_up(k, columns), m * columns,
           [&](int64_t part) { loops().low_rank.gradient(low, x, part * columns, m, k, rank, dw); });
}

}  // namespace easydel::kernels
