// Collectives with gradients, the building blocks of tensor parallelism and FSDP. On a group of one rank each returns
// its input. Sources: Megatron-LM (arXiv:1909.08053) for enter and leave, ZeRO (arXiv:1910.02054) for gather.
#pragma once

#include <cstdint>

#include "easydel/collective/team.h"
#include "easydel/tensor/torch.h"

namespace easydel::collective {

// Enters a region where each rank computes some of the outputs from all of x: identity; backward sums over ranks.
Tensor enter(const Group& group, const Tensor& x);

// Leaves a region where each rank holds one term of a sum: sums over ranks; backward is the identity.
Tensor leave(const Group& group, const Tensor& x);

// The gradient of a gathered tensor on each rank.
enum class GatherGradient : uint8_t {
  sum,  // differs per rank (its rows of the batch): summed, each rank gets its part (reduce-scatter)
  same  // equal on all ranks: each keeps its part
};
// Concatenates the ranks' parts along `dimension`. Backward converts back to x's dtype before it sums, so an fp32 shard
// that is gathered as bf16 gets an fp32 sum. `dtype` is that of the result; nullopt: x's.
Tensor gather(const Group& group, const Tensor& x, int64_t dimension, GatherGradient gradient,
              std::optional<at::ScalarType> dtype = std::nullopt);

// This rank's part of `dimension`; backward gathers.
Tensor scatter(const Group& group, const Tensor& x, int64_t dimension);

}  // namespace easydel::collective
