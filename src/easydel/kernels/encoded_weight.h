// Weights that stay in the codes of their file: a product decodes the rows that it reads. Which codes they are is the
// business of the layer quant.
#pragma once

#include <memory>

#include "easydel/kernels/dtype.h"
#include "easydel/kernels/executor.h"

namespace easydel::kernels {

class EncodedRows {
 public:
  virtual ~EncodedRows() = default;
  virtual int64_t k() const = 0;
  // The values of `count` rows from `first` on, `step` apart: row-major [count, k]. Thread-safe, and the same values on
  // every call.
  virtual void decode(int64_t first, int64_t step, int64_t count, float* to) const = 0;
};

// A weight [n, k] of such rows.
struct EncodedWeight {
  std::shared_ptr<const EncodedRows> rows;
  int64_t n = 0, first = 0, step = 1;

  int64_t k() const { return rows->k(); }
  void decode(int64_t row, int64_t count, float* to) const { rows->decode(first + row * step, step, count, to); }
};

// All values, rounded once if `to` is bf16.
void decode(Executor& executor, const EncodedWeight& w, Output to);

}  // namespace easydel::kernels
