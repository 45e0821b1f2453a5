// The short causal convolution before a recurrence, over flat tokens.
#pragma once

#include <vector>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// y[t, c] = bias[c] + sum_w weight[c, w] x[t - width + 1 + w, c] over the tokens of the same sequence, summed in fp32
// and rounded once. x [tokens, channels], weight [channels, width], bias [channels] or undefined. Sequence s is rows
// [cu_seqlens[s], cu_seqlens[s + 1]). `states`, fp32 [sequences, width - 1, channels], holds the inputs before them,
// oldest first (undefined: zero), and is overwritten. It has no gradient, and a call with states returns none.
Tensor causal_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const std::vector<int64_t>& cu_seqlens, const Tensor& states = {});

}  // namespace easydel::ops
