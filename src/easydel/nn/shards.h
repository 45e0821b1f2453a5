// Collective operations on sharded tensors, for optimizers and checkpoints: all ranks call them, for the same entries
// in the same order. On one rank nothing is communicated.
#pragma once

#include "easydel/nn/parameter.h"

namespace easydel::nn {

// The whole tensor on every rank, from parts that are sharded like the entry (values, gradient, optimizer state).
Tensor whole_of(const Entry& entry, const Tensor& part);

// After the backwards of a step: sums each shard's gradient over the ranks that hold the same shard and worked on other
// rows of the batch. (If a weight is sharded over those ranks, the gather's backward has summed it already.) If a
// parameter got a gradient on some ranks only, the others count as zero.
void reduce_gradients(ParameterTable& table);

// The sum of squares of all gradients, each element of the whole tensors counted once; fp64 over
// the shards' norms.
double squared_gradient_norm(const ParameterTable& table);

}  // namespace easydel::nn
