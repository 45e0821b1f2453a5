#include "easydel/tensor/permutation.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

namespace easydel::tensor {

Tensor torch_permutation(int64_t size, uint64_t seed) {
  return at::randperm(size, at::detail::createCPUGenerator(seed), at::TensorOptions().dtype(at::kLong));
}

}  // namespace easydel::tensor
