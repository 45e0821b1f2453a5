// An update rule whose states are kept as 8-bit codes between updates: bitsandbytes' optimizers with blocks of 256.
#pragma once

#include <memory>

#include "easydel/train/update_rules.h"

namespace easydel::train {

// Tensors with fewer elements keep states in fp32.
constexpr int64_t min_coded_elements = 4096;

// The rule with its states in the dynamic map (quant/dynamic_map.h): an update decodes them to fp32, applies `rule`,
// and encodes them again. A state `name` becomes name_codes, U8 as the value, and name_scales, fp32. States of squares
// have no sign. A parameter that is cut over ranks is updated as a whole on each, because blocks run over its elements.
std::unique_ptr<UpdateRule> eight_bit(std::unique_ptr<UpdateRule> rule);

}  // namespace easydel::train
