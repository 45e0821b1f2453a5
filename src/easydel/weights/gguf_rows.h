// The converter's changes to the values of a tensor, and their inverses. Each returns a view that owns its bytes.
#pragma once

#include "easydel/weights/tensor_view.h"

namespace easydel::weights {

GgmlType ggml_type_of(const TensorView& view);  // Bug for values that are not floating-point

// Whether the rows can be those of so many heads of even size.
bool has_heads(const TensorView& view, int64_t heads);

// Reorders the rows of `heads` heads from halves (Hugging Face rotates row i with row i + half) to neighbouring pairs
// (llama's own order), or `back`. Whole rows move, so blocks stay valid. A shape that does not have these heads is
// returned unchanged.
TensorView with_reordered_rows(TensorView view, int64_t heads, bool back);

// Adds `value` to each element, in fp32.
TensorView with_added(TensorView view, float value);

}  // namespace easydel::weights
