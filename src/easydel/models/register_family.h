// Families from outside the tree, registered by elarge/plugin.h.
#pragma once

#include "easydel/models/family.h"
#include "easydel/models/family_configs.h"

namespace easydel::models {

// One more family; families() and family_configs() have it from now on, and spans of before are stale: call it before
// any model is opened. UserError if the model_type is taken.
void register_family(const Family& family, const FamilyConfig& config);

}  // namespace easydel::models
