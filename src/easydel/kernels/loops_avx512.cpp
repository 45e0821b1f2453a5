// The loops for AVX-512. Everything below the pragma is compiled for it; the standard headers come before.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"

// g++ 12 warns of the undefined registers in its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
#include "easydel/kernels/dynamic_codes_avx512.h"
#include "easydel/kernels/loops_table.h"
#include "easydel/kernels/simd_avx512.h"

namespace easydel::kernels {

const Loops& avx512_loops() {
  static constexpr Loops loops = make_loops<Avx512, Avx512Dots>();
  return loops;
}

}  // namespace easydel::kernels
