// Code shared by the kinds of recorded cases about whole models.
#pragma once

#include "easydel/probe/vectors.h"

namespace easydel::probe {

// The config.json for a case's hf_config_class and hf_config_kwargs. Throws VectorNotBuilt if the family is not built.
Value model_config_of(const VectorCase& vector);

}  // namespace easydel::probe
