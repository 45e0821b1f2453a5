// Differences between torch 2.11 and 2.14 in the parts that we use. Include it only where a backward is defined: it
// includes the autograd graph's headers.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace easydel::tensor {

// Graph nodes are owned by shared_ptr up to 2.12 and by intrusive_ptr after.
using NodePointer = std::remove_cvref_t<decltype(std::declval<torch::autograd::Edge>().function)>;

template <class T, class... Args>
auto make_node(Args&&... args) {
  if constexpr (std::is_same_v<NodePointer, std::shared_ptr<torch::autograd::Node>>)
    return std::make_shared<T>(std::forward<Args>(args)...);
  else
    return c10::make_intrusive<T>(std::forward<Args>(args)...);
}

}  // namespace easydel::tensor
