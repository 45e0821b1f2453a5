// The kinds of recorded cases that need no torch.
#include "easydel/probe/vectors.h"

namespace easydel::probe {

// Each in vectors_<kind or group>.cpp.
VectorKind attn_sharding_rules_vectors();
VectorKind create_mesh_vectors();
VectorKind elarge_api_vectors();
VectorKind elarge_cli_vectors();
VectorKind elarge_derived_vectors();
VectorKind elarge_normalize_vectors();
VectorKind elarge_runner_vectors();
VectorKind elarge_scalars_vectors();
VectorKind elarge_trainer_vectors();
VectorKind expert_mesh_vectors();
VectorKind operation_metadata_vectors();
VectorKind parse_mesh_string_vectors();
VectorKind partition_correction_vectors();
VectorKind partition_resolve_vectors();
VectorKind registry_lookup_vectors();

const std::vector<VectorKind>& vector_kinds() {
  static const std::vector<VectorKind> kinds = {
      attn_sharding_rules_vectors(),  create_mesh_vectors(),        elarge_api_vectors(),
      elarge_cli_vectors(),           elarge_derived_vectors(),     elarge_normalize_vectors(),
      elarge_runner_vectors(),        elarge_scalars_vectors(),     elarge_trainer_vectors(),
      expert_mesh_vectors(),          operation_metadata_vectors(), parse_mesh_string_vectors(),
      partition_correction_vectors(), partition_resolve_vectors(),  registry_lookup_vectors(),
  };
  return kinds;
}

}  // namespace easydel::probe
