// First moments that are kept in bf16 between updates.
#pragma once

#include <memory>

#include "easydel/train/update_rules.h"

namespace easydel::train {

// The rule with its states mean and momentum kept in bf16: an update reads them as fp32, computes with what it makes of
// them, and rounds that to nearest afterwards, as optax does with mu_dtype.
std::unique_ptr<UpdateRule> short_moments(std::shared_ptr<const UpdateRule> rule);

}  // namespace easydel::train
