// Materialized attention scores in ATen, for backends without a kernel of their own.
#pragma once

#include "easydel/ops/attention.h"

namespace easydel::ops {

// fp32 [heads, tokens, dim] of t [tokens, kv_heads, dim]: each kv head is repeated for every head that reads it.
Tensor heads_first(const Tensor& t, int64_t heads);

// Scores fp32 [heads, queries, keys] of q [heads, queries, dim] and k [heads, keys, dim]: scaled, soft-capped and
// biased by slopes, in that order; nothing is masked. `query`, `key`: int64 positions in the sequence. `counted`: int64
// [keys], positions counted over unmasked keys, for slopes in bf16; undefined: `key`.
Tensor attention_scores(const AttentionSpec& spec, const Tensor& q, const Tensor& k, const Tensor& query,
                        const Tensor& key, const Tensor& counted = {});

// bool [queries, keys], true if the positions do not let the query see the key.
Tensor unseen(const AttentionSpec& spec, const Tensor& query, const Tensor& key);

// Probabilities fp32 [heads, queries, keys] of one sequence: q [queries, heads, dim], k [keys, kv_heads, dim], the last
// query at the last key's position. With sinks a row adds up to less than 1. `masked`: bool [keys]; undefined: none.
Tensor attention_weights(const AttentionSpec& spec, const Tensor& q, const Tensor& k, const Tensor& masked = {});

}  // namespace easydel::ops
