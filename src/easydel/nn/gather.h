// From a parameter's shard to what a forward reads, with the gradient's way back.
#pragma once

#include "easydel/nn/parameter.h"

namespace easydel::nn {

// As entry.use says: the whole tensor, or this rank's part of it along the tensor axis. Collective.
Tensor gathered(const Entry& entry);

// Whether that puts parts of several ranks together: such a tensor, and what is made of it, is dropped after use, so
// that a model that is cut over ranks never lies whole on one.
bool is_gathered(const Entry& entry);

}  // namespace easydel::nn
