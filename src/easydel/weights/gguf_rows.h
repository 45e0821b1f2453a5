// What a converter to GGUF does to the values of a tensor, and back. Each gives a view with bytes of its own.
#pragma once

#include "easydel/weights/tensor_view.h"

namespace easydel::weights {

GgmlType ggml_type_of(const TensorView& view);  // of floating values; Bug for others

// Rows of `heads` heads from halves (Hugging Face's rotary positions turn number i with number i + half) to pairs of
// neighbours (llama's own), or `back`. Rows stay whole, so blocks stay blocks. A shape without such heads stays as it
// is.
TensorView with_turned_rows(TensorView view, int64_t heads, bool back);

// `number` added to each value, in fp32.
TensorView with_added(TensorView view, float number);

}  // namespace easydel::weights
