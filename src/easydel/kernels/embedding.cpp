// Cuts gathering into rows and its gradient into columns, so that no two threads write one element.
#include "easydel/kernels/embedding.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/row_tasks.h"

namespace easydel::kernels {

void gather_rows(Executor& executor, Input table, const int64_t* indices, int64_t rows, int64_t n, Output y) {
  const Loops& isa = loops();
  run_rows(executor, rows, n,
           [&](int64_t r) { isa.pointwise.copy_row(table.at(indices[r]), table.dtype, n, y.at(r), y.dtype); });
}

void add_rows(Executor& executor, Input dy, const int64_t* indices, int64_t rows, int64_t n, Output dtable) {
  check(dtable.dtype == DType::f32, "add_rows: the sum is fp32");
  const Loops& isa = loops();
  constexpr int64_t columns = 128;
  executor.run(divide_up(n, columns), [&](int64_t part) {
    const int64_t first = part * columns, count = std::min(columns, n - first);
    for (int64_t r = 0; r < rows; ++r)
      isa.pointwise.add_row(dy.at(r, first), dy.dtype, count, static_cast<float*>(dtable.at(indices[r], first)));
  });
}

}  // namespace easydel::kernels
