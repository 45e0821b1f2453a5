// The memory of recurrent layers over flat tokens: per head a matrix that decays, is written and is read token by token
// (formula and sources: kernels/recurrence.h).
#pragma once

#include <vector>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// The kind of recurrence of a layer. No decay and delta false: linear attention.
struct RecurrenceSpec {
  bool delta = false;        // there is a beta
  bool read_before = false;  // a token reads the state before its own update
};

// Tensors of any floating dtype; the arithmetic is fp32.
struct RecurrenceTensors {
  Tensor q, k;  // [tokens, groups, k_dim]; head h uses group h / (heads / groups)
  Tensor v;     // [tokens, heads, v_dim]
  Tensor rate;  // logarithm of the decay: [tokens, heads], or [tokens, heads, k_dim] for rows of the state; undefined:
                // none
  Tensor by_column;  // instead of `rate`: [tokens, heads, v_dim] for its columns
  Tensor slopes;     // [heads, k_dim, v_dim], factors of by_column; undefined: ones
  Tensor beta;       // [tokens, heads], with the delta rule
};

// o fp32 [tokens, heads, v_dim]. Sequence s is rows [cu_seqlens[s], cu_seqlens[s + 1]). `states`, fp32 [sequences,
// heads, k_dim, v_dim], holds the initial states (undefined: zero) and is overwritten with the final ones. States have
// no gradient.
Tensor recurrence(const RecurrenceSpec& spec, const RecurrenceTensors& in, const std::vector<int64_t>& cu_seqlens,
                  const Tensor& states = {});

// The running maximum m_t = max(m_{t-1} + f_t, i_t) of f, i [tokens, channels] (arXiv 2405.04517), the exponent that
// keeps sums of exponentials in range. `before` is m_{t-1}, -infinity at the start of a sequence. fp32, no gradient.
// `states` [sequences, channels] as above.
struct RunningMaximum {
  Tensor after, before;
};
RunningMaximum running_maximum(const Tensor& f, const Tensor& i, const std::vector<int64_t>& cu_seqlens,
                               const Tensor& states = {});

}  // namespace easydel::ops
