// Dropout whose mask is a function of a key, the global token and the channel: equal for any cut of a batch and in
// every recomputation.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// The key of a layer's mask: f(seed, step, layer path).
uint64_t dropout_key(uint64_t seed, uint64_t step, std::string_view path);

// x [tokens, ...]: each element is zero with probability `rate`, otherwise divided by 1 - rate. Row t is global token
// first_token + t, or first_token + tokens[t] if `tokens`, int64 [tokens] on the CPU, is defined.
Tensor dropout(const Tensor& x, double rate, uint64_t key, int64_t first_token, const Tensor& tokens = {});
// fp32 [tokens, channels]: uniform random numbers in [0, 1).
Tensor uniform(int64_t tokens, int64_t channels, uint64_t key, int64_t first_token);
// x times uniform random numbers in [1 - amount, 1 + amount].
Tensor jitter(const Tensor& x, double amount, uint64_t key, int64_t first_token);
// Dropout of attention weights [heads, rows, keys]. Rows are tokens; column t is key first_key + t, where first_key is
// a multiple of 4.
Tensor dropout_rows(const Tensor& weights, double rate, uint64_t key, int64_t first_token, int64_t first_key = 0);

}  // namespace easydel::ops
