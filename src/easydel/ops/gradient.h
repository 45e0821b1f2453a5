// Whether a call must build a backward.
#pragma once

#include <optional>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// An argument of an autograd function, which may be absent but not undefined.
inline std::optional<Tensor> argument(const Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

template <class... Tensors>
bool wants_gradient(const Tensors&... tensors) {
  return at::GradMode::is_enabled() && ((tensors.defined() && tensors.requires_grad()) || ...);
}

}  // namespace easydel::ops
