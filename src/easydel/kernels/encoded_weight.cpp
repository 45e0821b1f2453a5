#include "easydel/kernels/encoded_weight.h"

#include <algorithm>

#include "easydel/kernels/code_panels.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/product_layout.h"
#include "easydel/kernels/rounded.h"

namespace easydel::kernels {
namespace {

// The rows of a panel, row-major [count, k].
template <class T>
void decode_panel(const CodePanels& panels, int64_t panel, int64_t count, Output to) {
  constexpr int64_t block = 16;  // k whose part of the panel L1 holds
  thread_local Scratch<float> of_thread;
  const int64_t k = panels.k();
  float* const columns = of_thread.at_least(panel_columns * k);
  loops().product.decode_codes(panels.layout(), panel, DType::f32, columns);
  for (int64_t begin = 0; begin < k; begin += block)
    for (int64_t c = 0; c < count; ++c) {
      T* const row = static_cast<T*>(to.at(c));
      for (int64_t i = begin; i < std::min(k, begin + block); ++i) put_rounded(columns[i * panel_columns + c], row[i]);
    }
}

template <class T>
void decode_as(Executor& executor, const EncodedWeight& w, Output to) {
  const int64_t k = w.k();
  const CodePanels* const panels = panels_of(w);
  executor.run(divide_up(w.n, panel_columns), [&](int64_t task) {
    const int64_t first = task * panel_columns, count = std::min(panel_columns, w.n - first);
    const Output rows{to.at(first), to.dtype, to.stride};
    if (panels) return decode_panel<T>(*panels, w.first / panel_columns + task, count, rows);
    thread_local Scratch<float> of_thread;
    float* const values = of_thread.at_least(panel_columns * k);
    w.decode(first, count, values);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < k; ++i) put_rounded(values[r * k + i], static_cast<T*>(rows.at(r))[i]);
  });
}

}  // namespace

void decode(Executor& executor, const EncodedWeight& w, Output to) {
  if (to.dtype == DType::f32)
    decode_as<float>(executor, w, to);
  else
    decode_as<bf16>(executor, w, to);
}

}  // namespace easydel::kernels
