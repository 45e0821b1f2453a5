// Which numbers of rotated dimensions a family can compute with: rotary positions turn pairs.
#pragma once

#include "easydel/models/config_reader.h"

namespace easydel::models {

// UserError for a number that is odd and cannot be rounded up, within a head of `head_dim` dimensions.
void check_rotated_pairs(const ConfigReader& config, const ops::RopeSpec& rope, int64_t head_dim);

// UserError for any odd number: of families whose classes in transformers split a head by the number as it is.
void check_even_rotation(const ConfigReader& config, const ops::RopeSpec& rope);

}  // namespace easydel::models
