// The loops in plain C++: what every instruction set must equal, bit for bit.
#include "easydel/kernels/loops_table.h"
#include "easydel/kernels/simd_scalar.h"

namespace easydel::kernels {

const Loops& reference_loops() {
  static constexpr Loops loops = make_loops<Scalar, ScalarDots>();
  return loops;
}

}  // namespace easydel::kernels
