// Checks the number of rotated dimensions: rotary positions rotate pairs.
#pragma once

#include "easydel/models/config_reader.h"

namespace easydel::models {

// UserError if the number is odd and cannot be rounded up within a head of `head_dim` dimensions.
void check_rotated_pairs(const ConfigReader& config, const ops::RopeSpec& rope, int64_t head_dim);

// For families that cannot round up (the whole head is rotated, or transformers splits a head by the unrounded number):
// a single rotated dimension is allowed. UserError for any other odd number.
void settle_odd_rotation(const ConfigReader& config, ops::RopeSpec& rope);

}  // namespace easydel::models
