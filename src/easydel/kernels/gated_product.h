// The product of a gated activation, which is computed while the product packs it and is never stored as a whole.
#pragma once

#include "easydel/kernels/fused.h"
#include "easydel/kernels/product.h"

namespace easydel::kernels {

// product() of activate(gate, up), with the bits of the two calls: the activation is rounded to gate's dtype. gate and
// up are [m, k]; up.data may be null.
void gated_product(Executor& executor, const PackedWeight& w, Activation activation, Input gate, Input up, int64_t m,
                   Output y, const float* bias, AccumulationOrder order);

}  // namespace easydel::kernels
