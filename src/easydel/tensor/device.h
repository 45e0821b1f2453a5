// Where tensors live.
#pragma once

#include <c10/core/Device.h>

#include <string_view>

namespace easydel::tensor {

// "cpu", "gpu" (also "cuda"), or "auto": the GPU if there is one. UserError for another word, and for a GPU where torch
// finds none.
at::Device choose_device(std::string_view word);

}  // namespace easydel::tensor
