// Which beginnings of sequences have the same bits, whatever comes after them.
#pragma once

#include <cstdint>

#include "easydel/models/model.h"

namespace easydel::models {

// Two sequences of at most this many tokens that begin alike have the same bits there. Longer ones may differ: their
// rotary frequencies or the choice of their keys depends on their length. 0: no limit.
int64_t alike_length(const Model& model);

}  // namespace easydel::models
