// The mesh that mixtures of experts compute on: (dp, ep, tp), folded from the mesh of the model.
#pragma once

#include "easydel/mesh/mesh.h"
#include "easydel/mesh/partition_axis.h"

namespace easydel::mesh {

struct ExpertBinding {
  bool fsdp = true;  // fsdp's ranks hold different experts (else they are copies)
  bool sp = true;    // so do sp's
};

// Shapes are folded, ranks stay in their order: ep' is ep with what is bound to it, dp' is dp with what is not, tp' is
// tp. So a group along tp' is not always one along tp (where sp > 1 is bound). The roles are named by `axis`; its
// experts' mesh has their names. UserError where two roles share an axis, so that the ranks do not come out even.
Mesh expert_mesh(const Mesh& mesh, const PartitionAxis& axis = {}, ExpertBinding binding = {},
                 AxisType type = AxisType::explicit_);
inline Mesh auto_expert_mesh(const Mesh& mesh, const PartitionAxis& axis = {}, ExpertBinding binding = {}) {
  return expert_mesh(mesh, axis, binding, AxisType::automatic);
}

}  // namespace easydel::mesh
