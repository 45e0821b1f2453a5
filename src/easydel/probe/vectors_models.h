// What the kinds of recorded cases about whole models share.
#pragma once

#include "easydel/probe/vectors.h"

namespace easydel::probe {

// The config.json that a case's hf_config_class and hf_config_kwargs mean; VectorNotBuilt where the family is not.
Value model_config_of(const VectorCase& vector);

}  // namespace easydel::probe
