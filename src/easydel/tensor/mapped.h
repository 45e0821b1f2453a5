// Tensors backed by the bytes of weight files, and tensors as file entries.
#pragma once

#include <functional>
#include <string>

#include "easydel/tensor/torch.h"
#include "easydel/weights/safetensors.h"

namespace easydel::tensor {

// The file's bytes as a tensor, without a copy if their alignment allows it; the tensor keeps the mapping alive. Writes
// to it stay in memory. Quantized blocks of a GGUF file are decoded to fp32.
Tensor from_view(const weights::TensorView& view);

// Releases the memory of a tensor that from_view made without a copy and that nobody has written to: its values are
// read from the file again on next use. Does nothing for other tensors.
void forget(const Tensor& value);

// A tensor as a file entry. It is moved to the CPU and converted to `type` only when it is written.
weights::OutTensor to_file(std::string name, const Tensor& value, at::ScalarType type);

}  // namespace easydel::tensor
