// The kinds of recorded cases whose answers need torch.
#include "easydel/cli/vectors.h"

namespace easydel::cli {

const std::vector<VectorKind>& core_vector_kinds() {
  static const std::vector<VectorKind> kinds = {};
  return kinds;
}

}  // namespace easydel::cli
