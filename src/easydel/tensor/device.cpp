#include "easydel/tensor/device.h"

#include <ATen/Context.h>

#include <string>

#include "easydel/base/error.h"

namespace easydel::tensor {

at::Device choose_device(std::string_view word) {
  if (word == "cpu") return at::kCPU;
  if (word == "auto" || word.empty()) return at::hasCUDA() ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  if (word != "gpu" && word != "cuda") refuse("device", str("'", word, "' is not a device"), "known: auto, cpu, gpu");
  if (!at::hasCUDA()) refuse("device", str("'", word, "' was requested, but torch finds no GPU"), "use cpu or auto");
  return at::Device(at::kCUDA, 0);
}

}  // namespace easydel::tensor
