// Attention scores written out in ATen, for backends without a kernel of their own.
#pragma once

#include "easydel/ops/attention.h"

namespace easydel::ops {

// fp32 [heads, tokens, dim] of t [tokens, kv_heads, dim]: each kv head stands once for every head that reads it.
Tensor heads_first(const Tensor& t, int64_t heads);

// Scores fp32 [heads, queries, keys] of q [heads, queries, dim] and k [heads, keys, dim]: scaled, soft-capped and
// leaned by slopes, in that order; nothing is masked. `query`, `key`: int64 places in the sequence. `counted`: int64
// [keys], places of keys where hidden ones do not count, for slopes in bf16; undefined: `key`.
Tensor attention_scores(const AttentionSpec& spec, const Tensor& q, const Tensor& k, const Tensor& query,
                        const Tensor& key, const Tensor& counted = {});

// bool [queries, keys], true where the query's place does not let it see the key.
Tensor unseen(const AttentionSpec& spec, const Tensor& query, const Tensor& key);

}  // namespace easydel::ops
