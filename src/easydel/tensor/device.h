// The device of tensors.
#pragma once

#include <c10/core/Device.h>

#include <string_view>

namespace easydel::tensor {

// "cpu", "gpu" (or "cuda"), or "auto": the GPU if there is one. UserError for another word, and for a GPU that torch
// does not find.
at::Device choose_device(std::string_view word);

}  // namespace easydel::tensor
