// Rows of a table by index.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// UserError for an index outside a table of `rows` rows.
void check_indices(const Tensor& indices, int64_t rows);

// table [vocabulary, size], indices int64 [tokens] -> [tokens, size] in dtype `type`. The table's gradient is dense,
// summed in token order in fp32, in the table's dtype; row `padding` gets none (-1: every row gets one). UserError for
// an index outside the table.
Tensor embedding(const Tensor& table, const Tensor& indices, at::ScalarType type, int64_t padding = -1);

}  // namespace easydel::ops
