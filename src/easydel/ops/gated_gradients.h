// What products that hold a gated(gate, up) need of it: its kernel, and what flows back through it.
#pragma once

#include <optional>

#include "easydel/kernels/fused.h"
#include "easydel/ops/activation.h"

namespace easydel::ops {

// The kernel of gated(gate, up), where it serves these tensors.
std::optional<kernels::Activation> gated_kernel(const Tensor& gate, const Tensor& up, Activation kind);

struct GatedGradients {
  Tensor gate, up;
  Tensor value;  // gated(gate, up) again, where it is wanted
};

// `gradient` is spent: the value may lie where it lay.
GatedGradients gated_gradients(Tensor gradient, const Tensor& gate, const Tensor& up, Activation kind,
                               bool wants_value);

}  // namespace easydel::ops
