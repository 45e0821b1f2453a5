// The choice between the tables of loops.
#include "easydel/kernels/loops.h"

namespace easydel::kernels {

const Loops& loops() {
  switch (isa()) {
    case Isa::reference:
      return reference_loops();
    case Isa::avx2:
      return avx2_loops();
    case Isa::avx512:
      return avx512_loops();
    case Isa::avx512_vnni:
      return avx512_vnni_loops();
    case Isa::amx:
      return amx_loops();
  }
  __builtin_unreachable();
}

Left left_of_gradient(Input left, Input right) {
  if (left.number != Number::bf16 || right.number != Number::bf16) return Left::rows;
  return loops().multiply_tiles ? Left::tiles : loops().multiply_pairs ? Left::pairs : Left::rows;
}

}  // namespace easydel::kernels
