// Collectives with gradients: what tensor and fully sharded parallelism are made of. On a group of one rank each
// returns its input. Sources: Megatron-LM (arXiv:1909.08053) for enter and leave, ZeRO (arXiv:1910.02054) for gather.
#pragma once

#include <cstdint>

#include "easydel/collective/team.h"
#include "easydel/tensor/torch.h"

namespace easydel::collective {

// Into a region where each rank computes a part of the outputs from the whole x: identity; backward sums over ranks.
Tensor enter(const Group& group, const Tensor& x);

// Out of a region where each rank holds a term of the sum: sums over ranks; backward is the identity.
Tensor leave(const Group& group, const Tensor& x);

// What the gradient of a gathered tensor is on each rank.
enum class GatherGradient : uint8_t {
  sum,  // each rank has its own (its rows of the batch): summed, and each gets its part (reduce-scatter)
  same  // all ranks have the same: each keeps its part
};
// Parts along `dimension` into the whole. The sum of the backward is taken in x's number type after `dtype` was undone,
// so an fp32 shard gathered as bf16 gets an fp32 sum. `dtype`: of the result; nullopt: x's.
Tensor gather(const Group& group, const Tensor& x, int64_t dimension, GatherGradient gradient,
              std::optional<at::ScalarType> dtype = std::nullopt);

// This rank's part of `dimension`; the backward gathers.
Tensor scatter(const Group& group, const Tensor& x, int64_t dimension);

}  // namespace easydel::collective
