// Which numbers of rotated dimensions a family can compute with: rotary positions turn pairs.
#pragma once

#include "easydel/models/config_reader.h"

namespace easydel::models {

// UserError for a number that is odd and cannot be rounded up, within a head of `head_dim` dimensions.
void check_rotated_pairs(const ConfigReader& config, const ops::RopeSpec& rope, int64_t head_dim);

// Where nothing can be rounded up (a whole head turns, or transformers' classes split a head by the number as it is):
// one dimension turns alone. UserError for any other odd number.
void settle_odd_rotation(const ConfigReader& config, ops::RopeSpec& rope);

}  // namespace easydel::models
