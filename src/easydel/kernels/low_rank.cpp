// Cuts the loops of low_rank_loops.h into tasks.
#include "easydel/kernels/low_rank.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/product_layout.h"
#include "easydel/kernels/row_tasks.h"

namespace easydel::kernels {
namespace {

// The loops are fastest with whole blocks of rows.
int64_t rows_of_task(int64_t elements_per_row) {
  constexpr int64_t rows_per_block = 8;
  return round_up(rows_per_task(elements_per_row), rows_per_block);
}

}  // namespace

void add_narrow_product(Executor& executor, Input y, const float* low, int64_t low_stride, const PackedWeight& b,
                        int64_t m, float factor, Output out) {
  check(b.dtype() == DType::f32, "narrow product: the weight is not packed in fp32");
  const LowRankStep step{y, low, low_stride, reinterpret_cast<const float*>(b.data()), b.n(), b.k(), factor, out};
  const int64_t per_task = rows_of_task(b.n() * (2 + b.k() / 4));
  executor.run(divide_up(m, per_task), [&](int64_t task) {
    const int64_t begin = task * per_task;
    loops().low_rank.add_product(step, begin, std::min(m, begin + per_task) - begin);
  });
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

bool PackedLowRank::serves(const PackedWeight& a) {
  return loops().low_rank.pairs && a.dtype() == DType::bf16 && a.n() <= panel_columns && a.k() % k_block == 0;
}

PackedLowRank::PackedLowRank(const PackedWeight& a, const PackedWeight& b) : rank_(a.n()), n_(b.n()), k_(a.k()) {
  check(serves(a) && b.dtype() == DType::f32 && b.k() == rank_, "low rank: A is [", rank_, ", ", k_, "], B [", n_, ", ",
        b.k(), "]");
  constexpr int64_t bytes_of_tile = tile_elements * bytes_of(DType::bf16);
  const int64_t bytes_of_block = divide_up(rank_, tile_columns) * bytes_of_tile;
  bytes_of_a_ = k_ / k_block * bytes_of_block;
  const std::shared_ptr<uint8_t> data = allocate_block(bytes_of_a_ + b.bytes());
  for (int64_t block = 0; block < k_ / k_block; ++block)
    std::memcpy(data.get() + block * bytes_of_block, a.data() + block * 2 * bytes_of_tile, size_t(bytes_of_block));
  std::memcpy(data.get() + bytes_of_a_, b.data(), size_t(b.bytes()));
  data_ = data;
}

void add_low_ranks(Executor& executor, std::span<const AddedRows> adapters, Input x, int64_t k) {
  struct Task {
    const AddedRows* of;
    LowRankStep add;  // without rows
    int64_t begin, end;
  };
  std::vector<Task> tasks;
  for (const AddedRows& of : adapters) {
    LowRankStep add{.y = of.y, .low_stride = of.both ? of.both->rank() : of.rank, .factor = of.factor, .out = of.y};
    if (of.both) {
      check(x.dtype == DType::bf16 && of.both->k() == k, "low ranks: A is not that of x");
      add.panels = of.both->b(), add.n = of.both->n(), add.k = of.both->rank();
    } else {
      add.panels = reinterpret_cast<const float*>(of.b->data()), add.n = of.b->n(), add.k = of.b->k();
      check(of.b->dtype() == DType::f32 && add.k <= of.rank && (!of.narrow_a || is_narrow(of.rank)),
            "low ranks: B is [", add.n, ", ", add.k, "], the rank ", of.rank);
    }
    const auto rows = int64_t(of.rows.size());
    const int64_t per_task = rows_of_task(add.n * (2 + add.k / 4) + (of.low ? 0 : k));
    for (int64_t begin = 0; begin < rows; begin += per_task)
      tasks.push_back({&of, add, begin, std::min(rows, begin + per_task)});
  }
  executor.run(int64_t(tasks.size()), [&](int64_t index) {
    const auto& [of, whole, begin, end] = tasks[size_t(index)];
    LowRankStep add = whole;
    const int64_t count = end - begin;
    add.rows = of->rows.data() + begin;
    if (of->low) {
      add.low = of->low + begin * of->rank;
    } else {
      thread_local Scratch<float> of_thread;
      float* const low = of_thread.at_least(count * add.low_stride);
      const auto& isa = loops().low_rank;
      if (of->both)
        isa.pairs({x, add.rows, of->both->a(), k, add.low_stride, of->sign, low}, 0, count);
      else
        isa.narrow({x, add.rows, of->narrow_a, k, of->rank, of->sign, low}, 0, count);
      add.low = low;
    }
    loops().low_rank.add_product(add, 0, count);
  });
}

void narrow_gradient(Executor& executor, const float* low, Input x, int64_t m, int64_t k, int64_t rank, float* dw) {
  check(is_narrow(rank), "narrow gradient: the rank is ", rank);
  constexpr int64_t columns = 2 * 16;
  run_rows(executor, divide_up(k, columns), m * columns,
           [&](int64_t part) { loops().low_rank.gradient(low, x, part * columns, m, k, rank, dw); });
}

}  // namespace easydel::kernels
