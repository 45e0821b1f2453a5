// Tensors as files of recorded cases hold them: nested lists, or {"shape", "data"}.
#pragma once

#include <cstdint>

#include "easydel/base/document.h"
#include "easydel/tensor/torch.h"

namespace easydel::probe {

// Nested lists of equal lengths. Throws UserError for other lists, and for values that are not numbers.
Tensor tensor_of(const Value& value, at::ScalarType type = at::kFloat);
// {"shape", "data"}, flat.
Tensor shaped_tensor_of(const Value& value, at::ScalarType type = at::kFloat);

Value nested_of(const Tensor& tensor);  // a number if the tensor is a scalar
Value shaped_of(const Tensor& tensor);

// The recordings' values of matrices and weights, in [-0.5, 0.5): a hash of an element's place and the tensor's number.
double hashed(int64_t element, int64_t tensor);

}  // namespace easydel::probe
