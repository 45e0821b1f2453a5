// The door to libtorch: the only file that includes ATen by name. A file includes the ATen/ops/ headers it uses.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

namespace easydel {
using Tensor = at::Tensor;
}
