// What products of gated(gate, up) need: its kernel, and its backward.
#pragma once

#include <optional>

#include "easydel/kernels/fused.h"
#include "easydel/ops/activation.h"

namespace easydel::ops {

// The kernel of gated(gate, up), if it supports these tensors.
std::optional<kernels::Activation> gated_kernel(const Tensor& gate, const Tensor& up, Activation kind);

struct GatedGradients {
  Tensor gate, up;
  Tensor value;  // gated(gate, up) recomputed, if requested
};

// `gradient` is consumed: `value` may reuse its memory.
GatedGradients gated_gradients(Tensor gradient, const Tensor& gate, const Tensor& up, Activation kind,
                               bool wants_value);

}  // namespace easydel::ops
