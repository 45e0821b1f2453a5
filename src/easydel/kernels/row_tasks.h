// Work on rows that need nothing of each other, such as elementwise operations, gathering and decoding, cut into tasks.
#pragma once

#include <algorithm>

#include "easydel/kernels/dtype.h"
#include "easydel/kernels/executor.h"

namespace easydel::kernels {

// Enough to pay for starting a task, and few enough that a thread that comes late finds work.
constexpr int64_t elements_per_task = 1 << 15;

// At least one row.
inline int64_t rows_per_task(int64_t elements_per_row) {
  return std::max<int64_t>(1, elements_per_task / std::max<int64_t>(elements_per_row, 1));
}

// Calls work(begin, end) for ranges that cover all rows, each row of `elements_per_row` elements.
template <class Work>
void run_row_ranges(Executor& executor, int64_t rows, int64_t elements_per_row, const Work& work) {
  const int64_t per_task = rows_per_task(elements_per_row);
  executor.run(divide_up(rows, per_task),
               [&](int64_t task) { work(task * per_task, std::min(rows, (task + 1) * per_task)); });
}

// Calls work(row) for all rows.
template <class Work>
void run_rows(Executor& executor, int64_t rows, int64_t elements_per_row, const Work& work) {
  run_row_ranges(executor, rows, elements_per_row, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) work(row);
  });
}

}  // namespace easydel::kernels
