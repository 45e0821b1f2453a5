// What optimizers and checkpoints need to know of tensors in shards. Everything here is collective: all ranks call it,
// for the same entries in the same order; on one rank it does nothing or the plain thing.
#pragma once

#include "easydel/nn/parameter.h"

namespace easydel::nn {

// The whole tensor on every rank, from parts that are cut like the entry's shard (values, gradient, optimizer state).
Tensor whole_of(const Entry& entry, const Tensor& part);

// After the backwards of a step: sums each shard's gradient over the ranks that worked on other rows of the batch and
// hold the same shard. (Where a weight is cut over those ranks, the gather's backward has summed it already.) A
// parameter that got a gradient on some rank only counts as zero on the others.
void reduce_gradients(ParameterTable& table);

// The sum of squares of all gradients, each element of the whole tensors counted once; fp64 over
// the shards' norms.
double squared_gradient_norm(const ParameterTable& table);

}  // namespace easydel::nn
