// Dropout whose mask is a function of a key, the global token and the channel: equal for every cut of a batch and in
// every recomputation.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// The key of a layer's mask: f(seed, step, layer path).
uint64_t dropout_key(uint64_t seed, uint64_t step, std::string_view path);

// x [tokens, ...]: each element is zero with probability `rate`, else divided by 1 - rate. Row t is global token
// first_token + t.
Tensor dropout(const Tensor& x, double rate, uint64_t key, int64_t first_token);
// fp32 [tokens, channels]: numbers drawn evenly from [0, 1).
Tensor uniform(int64_t tokens, int64_t channels, uint64_t key, int64_t first_token);
// x times numbers drawn evenly from [1 - amount, 1 + amount].
Tensor jitter(const Tensor& x, double amount, uint64_t key, int64_t first_token);
// As dropout, for attention weights [heads, rows, keys], whose rows are tokens; column t is key first_key + t, a
// multiple of 4.
Tensor dropout_rows(const Tensor& weights, double rate, uint64_t key, int64_t first_token, int64_t first_key = 0);

}  // namespace easydel::ops
