#include "easydel/kernels/encoded_weight.h"

#include <algorithm>

#include "easydel/kernels/memory.h"
#include "easydel/kernels/product_layout.h"

namespace easydel::kernels {

void decode(Executor& executor, const EncodedWeight& w, Output to) {
  const int64_t k = w.k();
  executor.run(divide_up(w.n, panel_columns), [&](int64_t panel) {
    thread_local Scratch<float> of_thread;
    float* const values = of_thread.at_least(panel_columns * k);
    const int64_t first = panel * panel_columns, count = std::min(panel_columns, w.n - first);
    w.decode(first, count, values);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < k; ++i)
        if (to.dtype == DType::f32)
          static_cast<float*>(to.at(first + r))[i] = values[r * k + i];
        else
          static_cast<bf16*>(to.at(first + r))[i] = narrow(values[r * k + i]);
  });
}

}  // namespace easydel::kernels
