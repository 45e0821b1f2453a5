// Tensors on the bytes of weight files, and back to bytes.
#pragma once

#include <functional>
#include <string>

#include "easydel/tensor/torch.h"
#include "easydel/weights/safetensors.h"

namespace easydel::tensor {

// The file's bytes as a tensor, without a copy where their alignment allows; the tensor keeps the mapping alive. Never
// written to: the mapping is read-only.
Tensor from_view(const weights::TensorView& view);

// A tensor as a file entry; it is brought to the CPU and to `type` only when it is written.
weights::OutTensor to_file(std::string name, const Tensor& value, at::ScalarType type);

}  // namespace easydel::tensor
