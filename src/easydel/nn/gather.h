// From a parameter's shard to the tensor that a forward reads, with a gradient path back to the shard.
#pragma once

#include "easydel/nn/parameter.h"

namespace easydel::nn {

// As entry.use says: the whole tensor, or this rank's part of it along the tensor axis. Collective.
Tensor gathered(const Entry& entry);

// Whether gathering joins the parts of several ranks. Such a tensor, and what is computed from it, is dropped after
// use, so that no rank ever holds all of a sharded model.
bool is_gathered(const Entry& entry);

}  // namespace easydel::nn
