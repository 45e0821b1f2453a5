#include "easydel/tensor/device.h"

#include <ATen/Context.h>

namespace easydel::tensor {

std::optional<at::Device> gpu() {
  if (!at::hasCUDA()) return std::nullopt;
  return at::Device(at::kCUDA, 0);
}

}  // namespace easydel::tensor
