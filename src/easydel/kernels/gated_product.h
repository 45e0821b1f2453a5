// The product of what an activation leaves: it is made where the product packs it, and never lies in memory as a whole.
#pragma once

#include "easydel/kernels/fused.h"
#include "easydel/kernels/product.h"

namespace easydel::kernels {

// product() of activate(gate, up), with the bits of the two: what is made is rounded to gate's number type. gate and up
// are [m, k]; up.data may be null.
void gated_product(Executor& executor, const PackedWeight& w, Activation activation, Input gate, Input up, int64_t m,
                   Output y, const float* bias, Order order);

}  // namespace easydel::kernels
