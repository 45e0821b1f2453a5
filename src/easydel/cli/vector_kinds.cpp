// The kinds of recorded cases that need no torch.
#include "easydel/cli/vectors.h"

namespace easydel::cli {

// Each in vectors_<kind or group>.cpp.
VectorKind attn_sharding_rules_vectors();
VectorKind create_mesh_vectors();
VectorKind expert_mesh_vectors();
VectorKind parse_mesh_string_vectors();
VectorKind partition_correction_vectors();
VectorKind partition_resolve_vectors();

const std::vector<VectorKind>& vector_kinds() {
  static const std::vector<VectorKind> kinds = {
      attn_sharding_rules_vectors(),
      create_mesh_vectors(),
      expert_mesh_vectors(),
      parse_mesh_string_vectors(),
      partition_correction_vectors(),
      partition_resolve_vectors(),
  };
  return kinds;
}

}  // namespace easydel::cli
