// Finds NaN and infinity in a model's weights.
#pragma once

#include <string>

#include "easydel/models/model.h"

namespace easydel::models {

// The path of the first parameter that holds NaN or infinity on this rank; empty: none. Reads all weights once.
std::string first_not_finite(const Model& model);

}  // namespace easydel::models
