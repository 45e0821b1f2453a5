// Rows of a table by index.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// table [vocabulary, size], indices int64 [tokens] -> [tokens, size] in number type `type`. The gradient of the table
// is dense, summed in token order in fp32, in the table's number type. UserError for an index outside the table.
Tensor embedding(const Tensor& table, const Tensor& indices, at::ScalarType type);

}  // namespace easydel::ops
