// The mesh that mixture-of-experts layers use: (dp, ep, tp), folded from the model's mesh.
#pragma once

#include "easydel/mesh/mesh.h"
#include "easydel/mesh/partition_axis.h"

namespace easydel::mesh {

struct ExpertBinding {
  bool fsdp = true;  // ranks along fsdp hold different experts; false: they hold copies
  bool sp = true;    // the same along sp
};

// Folds shapes and keeps the order of ranks: the new ep is ep times the axes bound to it, the new dp is dp times the
// unbound ones, tp stays. A group along the new tp is therefore not always a group along tp (if sp > 1 is bound).
// `axis` names the roles, and the result has those names. UserError: two roles share an axis, so the number of ranks
// does not match.
Mesh expert_mesh(const Mesh& mesh, const PartitionAxis& axis = {}, ExpertBinding binding = {},
                 AxisType type = AxisType::explicit_);
inline Mesh auto_expert_mesh(const Mesh& mesh, const PartitionAxis& axis = {}, ExpertBinding binding = {}) {
  return expert_mesh(mesh, axis, binding, AxisType::automatic);
}

}  // namespace easydel::mesh
