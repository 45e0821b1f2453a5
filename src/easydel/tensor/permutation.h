// torch's own random numbers, for what must agree with programs that use torch. Everything else draws by random.h.
#pragma once

#include <cstdint>

#include "easydel/tensor/torch.h"

namespace easydel::tensor {

// int64 [size]: torch.randperm(size) on a CPU, by a new generator of this seed.
Tensor torch_permutation(int64_t size, uint64_t seed);

}  // namespace easydel::tensor
