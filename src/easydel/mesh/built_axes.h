// Which axes of a mesh this program computes on.
#pragma once

#include "easydel/mesh/mesh.h"

namespace easydel::mesh {

// UserError "sharding.axis_dims: ..." if an axis that is not built yet has several ranks.
void check_built_axes(const Mesh& mesh);

}  // namespace easydel::mesh
