// Tensors on the bytes of weight files, and back to bytes.
#pragma once

#include <functional>
#include <string>

#include "easydel/tensor/torch.h"
#include "easydel/weights/safetensors.h"

namespace easydel::tensor {

// The file's bytes as a tensor, without a copy where their alignment allows; the tensor keeps the mapping alive. What
// is written to it stays in memory. Blocks of a GGUF file become their values, in fp32.
Tensor from_view(const weights::TensorView& view);

// Gives back the memory of a tensor that from_view made without a copy, and that nobody has written to: its values are
// read from the file again when they are next used. Of others nothing.
void forget(const Tensor& value);

// A tensor as a file entry; it is brought to the CPU and to `type` only when it is written.
weights::OutTensor to_file(std::string name, const Tensor& value, at::ScalarType type);

}  // namespace easydel::tensor
