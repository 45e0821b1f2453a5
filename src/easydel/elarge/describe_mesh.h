// The body of `easydel describe mesh`, which needs the families of models.
#pragma once

#include <string>

#include "easydel/elarge/core.h"

namespace easydel::elarge {

// UserError: sizes that do not fit, a rule that is wrong, a model whose config.json cannot be read.
std::string describe_mesh_core(const MeshPlan& plan);

}  // namespace easydel::elarge
