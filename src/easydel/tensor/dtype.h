// Number types of files and of tensors, one for the other.
#pragma once

#include <c10/core/ScalarType.h>

#include "easydel/weights/dtype.h"

namespace easydel::tensor {

at::ScalarType scalar_type(weights::DType type);
weights::DType dtype_of(at::ScalarType type);  // Bug for a type that no file holds

}  // namespace easydel::tensor
