// Rows of a table by index, and their gradient.
#pragma once

#include "easydel/kernels/dtype.h"
#include "easydel/kernels/executor.h"

namespace easydel::kernels {

// y [rows, n] = table[indices[row]], rounded once if y is bf16 and the table is not. The caller checks the indices.
void gather_rows(Executor& executor, Input table, const int64_t* indices, int64_t rows, int64_t n, Output y);

// dtable[indices[row]] += dy[row] in fp32, in ascending row for each entry: same bits for any number of threads.
void add_rows(Executor& executor, Input dy, const int64_t* indices, int64_t rows, int64_t n, Output dtable);

}  // namespace easydel::kernels
