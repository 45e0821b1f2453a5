// Converts between dtypes of files and of tensors.
#pragma once

#include <c10/core/ScalarType.h>

#include "easydel/weights/dtype.h"

namespace easydel::tensor {

at::ScalarType scalar_type(weights::DType type);
weights::DType dtype_of(at::ScalarType type);  // Bug for a dtype that files cannot hold

}  // namespace easydel::tensor
