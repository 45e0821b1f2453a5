// Chooses a table of loops.
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

MatrixInstructions matrix_instructions() {
  const Loops& isa = loops();
  return {.pairs = isa.product.pairs.multiply != nullptr, .tiles = isa.product.tiles.multiply != nullptr};
}

}  // namespace easydel::kernels
