// The device of tensors.
#pragma once

#include <c10/core/Device.h>

#include <optional>

namespace easydel::tensor {

// The first GPU that torch finds; nothing: it finds none.
std::optional<at::Device> gpu();

}  // namespace easydel::tensor
