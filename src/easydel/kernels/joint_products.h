// Products of the same rows with several weights at once: the rows are packed once, and the threads meet once.
#pragma once

#include <algorithm>
#include <span>

#include "easydel/kernels/product.h"
#include "easydel/kernels/product_layout.h"
#include "easydel/kernels/quantized.h"

namespace easydel::kernels {

// y [m, n] = x W^T + bias [n] (null: none).
template <class W>
struct JointPart {
  const W* weight = nullptr;
  Output y{};
  const float* bias = nullptr;
};

// Whether products() takes these two weights together.
inline bool is_joint(const PackedWeight& a, const PackedWeight& b) { return a.k() == b.k() && a.dtype() == b.dtype(); }
inline bool is_joint(const QuantizedWeight& a, const QuantizedWeight& b) {
  const QuantizedSpec &one = a.spec(), &other = b.spec();
  return a.k() == b.k() && one.codes == other.codes && one.group == other.group && one.table == other.table &&
         one.numbers == other.numbers && one.shift == other.shift;
}

// Each result has the bits of product() with its weight alone, whose contract holds: x [m, k], `order`, y in place. At
// least one part; is_joint() of each with the first.
void products(Executor& executor, std::span<const JointPart<PackedWeight>> parts, Input x, int64_t m,
              AccumulationOrder order);
void products(Executor& executor, std::span<const JointPart<QuantizedWeight>> parts, Input x, int64_t m,
              AccumulationOrder order);

// Calls work(part, begin, end) for each part that has some of the panels [begin, end) of all parts, which are numbered
// through; begin and end are among its own.
template <class W, class Work>
void each_part(std::span<const JointPart<W>> parts, int64_t begin, int64_t end, const Work& work) {
  for (const JointPart<W>& part : parts) {
    const int64_t panels = divide_up(part.weight->n(), panel_columns);
    if (begin < panels && end > 0) work(part, std::max<int64_t>(begin, 0), std::min(end, panels));
    begin -= panels, end -= panels;
  }
}

template <class W>
int64_t panels_of(std::span<const JointPart<W>> parts) {
  int64_t panels = 0;
  for (const JointPart<W>& part : parts) panels += divide_up(part.weight->n(), panel_columns);
  return panels;
}

}  // namespace easydel::kernels
