// The kinds of recorded cases whose answers need torch.
#include "easydel/cli/vectors.h"

namespace easydel::cli {

// Each in vectors_<kind or group>_core.cpp.
VectorKind mask_info_vectors();
VectorKind model_param_mapping_vectors();
VectorKind model_partition_specs_vectors();
VectorKind rope_vectors();

const std::vector<VectorKind>& core_vector_kinds() {
  static const std::vector<VectorKind> kinds = {
      mask_info_vectors(),
      model_param_mapping_vectors(),
      model_partition_specs_vectors(),
      rope_vectors(),
  };
  return kinds;
}

}  // namespace easydel::cli
