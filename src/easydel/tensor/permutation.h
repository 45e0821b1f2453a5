// torch's own random numbers, for results that must agree with programs that use torch. All other code uses random.h.
#pragma once

#include <cstdint>

#include "easydel/tensor/torch.h"

namespace easydel::tensor {

// int64 [size]: torch.randperm(size) on a CPU with a new generator seeded with `seed`.
Tensor torch_permutation(int64_t size, uint64_t seed);

}  // namespace easydel::tensor
