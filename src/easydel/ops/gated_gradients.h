// What flows back through gated(gate, up), for the backwards that hold one.
#pragma once

#include "easydel/ops/activation.h"

namespace easydel::ops {

struct GatedGradients {
  Tensor gate, up;
  Tensor value;  // gated(gate, up) again, where it is wanted
};

// `gradient` is spent: the value may lie where it lay.
GatedGradients gated_gradients(Tensor gradient, const Tensor& gate, const Tensor& up, Activation kind,
                               bool wants_value);

}  // namespace easydel::ops
