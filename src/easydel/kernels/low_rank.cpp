// Cuts the loops of low_rank_loops.h into tasks.
#include "easydel/kernels/low_rank.h"

#include <algorithm>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/product_layout.h"
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
  const LowStep step{x, nullptr, a, k, rank, factor, low};
  run_row_ranges(executor, m, k,
                 [&](int64_t begin, int64_t end) { loops().low_rank.narrow(step, begin, end - begin); });
}

bool reads_packed_rows(const PackedWeight& a) {
  return loops().low_rank.pairs && bf16_order() == AccumulationOrder::bf16_pairs && a.dtype() == DType::bf16 &&
         a.n() <= panel_columns && a.k() % k_block == 0;
}

void add_low_ranks(Executor& executor, std::span<const AddedRows> adapters, Input x, int64_t k) {
  constexpr int64_t rows_per_block = 8;
  struct Task {
    const AddedRows* of;
    int64_t begin, end;
  };
  std::vector<Task> tasks;
  for (const AddedRows& of : adapters) {
    check(of.b->dtype() == DType::f32 && of.b->k() <= of.rank && (!of.narrow_a || is_narrow(of.rank)),
          "low ranks: B is [", of.b->n(), ", ", of.b->k(), "], the rank ", of.rank);
    check(!of.a || (x.dtype == DType::bf16 && of.a->n() == of.rank && of.a->k() == k), "low ranks: A is not that of x");
    const auto rows = int64_t(of.rows.size());
    const int64_t work = of.b->n() * (2 + of.b->k() / 4) + (of.low ? 0 : k),
                  per_task = round_up(rows_per_task(work), rows_per_block);
    for (int64_t begin = 0; begin < rows; begin += per_task)
      tasks.push_back({&of, begin, std::min(rows, begin + per_task)});
  }
  executor.run(int64_t(tasks.size()), [&](int64_t index) {
    const auto& [of, begin, end] = tasks[size_t(index)];
    const int64_t count = end - begin, *const rows = of->rows.data() + begin;
    thread_local Scratch<float> of_thread;
    const float* low = of->low ? of->low + begin * of->rank : nullptr;
    if (!low) {
      float* const made = of_thread.at_least(count * of->rank);
      const auto& isa = loops().low_rank;
      if (of->a)
        isa.pairs({x, rows, of->a->data(), k, of->rank, of->sign, made}, 0, count);
      else
        isa.narrow({x, rows, of->narrow_a, k, of->rank, of->sign, made}, 0, count);
      low = made;
    }
    const PackedWeight& b = *of->b;
    loops().low_rank.add_product(
        {of->y, low, of->rank, reinterpret_cast<const float*>(b.data()), b.n(), b.k(), of->factor, of->y, rows}, 0,
        count);
  });
}

void narrow_gradient(Executor& executor, const float* low, Input x, int64_t m, int64_t k, int64_t rank, float* dw) {
  check(is_narrow(rank), "narrow gradient: the rank is ", rank);
  constexpr int64_t columns = 2 * 16;
  run_rows(executor, divide_up(k, columns), m * columns,
           [&](int64_t part) { loops().low_rank.gradient(low, x, part * columns, m, k, rank, dw); });
}

}  // namespace easydel::kernels
