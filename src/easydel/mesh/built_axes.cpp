#include "easydel/mesh/built_axes.h"

#include "easydel/base/error.h"

namespace easydel::mesh {

void check_built_axes(const Mesh& mesh) {
  for (const char* axis : {"ep", "sp"})
    if (mesh.size(axis) > 1)
      refuse("sharding.axis_dims", str("axis ", axis, " has ", mesh.size(axis), " ranks, which is not built yet"),
             str("set ", axis, " to 1; dp, fsdp and tp are built"));
}

}  // namespace easydel::mesh
