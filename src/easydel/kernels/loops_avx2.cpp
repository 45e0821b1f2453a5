// The loops for AVX2. Everything below the pragma is compiled for it; the standard headers come before.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"

#pragma GCC target("avx2,fma,f16c")
#include "easydel/kernels/loops_table.h"
#include "easydel/kernels/simd_avx2.h"

namespace easydel::kernels {

const Loops& avx2_loops() {
  static constexpr Loops loops = make_loops<Avx2, Avx2Dots>();
  return loops;
}

}  // namespace easydel::kernels
