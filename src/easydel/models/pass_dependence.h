// Whether a token's bits depend on how its sequence was cut into passes and on what else a pass computed.
#pragma once

#include <cstdint>
#include <string>

#include "easydel/models/model.h"

namespace easydel::models {

// Why they depend on it, as part of a sentence; empty: they do not. Such a model computes a sequence with the bits of
// a forward over it alone only if it computes it whole and alone.
std::string pass_dependence(const Model& model);

// Two sequences of at most this many tokens that begin alike have the same bits there. Longer ones may differ: their
// rotary frequencies or the choice of their keys depends on their length. 0: no limit.
int64_t alike_length(const Model& model);

}  // namespace easydel::models
