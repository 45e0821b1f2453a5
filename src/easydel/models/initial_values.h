// Values of parameters that no checkpoint has.
#pragma once

#include "easydel/nn/scope.h"

namespace easydel::models {

// The entry's slice of the values that `initial` describes: f(seed, path, element), equal on every mesh.
Tensor initial_values(const nn::Entry& entry, const nn::Initial& initial, uint64_t seed, at::ScalarType type);

}  // namespace easydel::models
