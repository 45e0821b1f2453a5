// Recurrent layers' memory over flat tokens: a matrix for each head that decays, is written and is read token by token
// (kernels/recurrence.h says the formula and its sources).
#pragma once

#include <vector>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// What a layer asks of a recurrence; with decay none, delta false: linear attention.
struct RecurrenceSpec {
  bool delta = false;        // beta is given
  bool read_before = false;  // a token reads what was there before it
};

// fp32 or anything that becomes it; the arithmetic is fp32.
struct RecurrenceTensors {
  Tensor q, k;  // [tokens, groups, k_dim]; head h uses group h / (heads / groups)
  Tensor v;     // [tokens, heads, v_dim]
  Tensor rate;  // logarithm of the decay: [tokens, heads], or [tokens, heads, k_dim] for rows of the state; undefined:
                // none
  Tensor by_column;  // instead of `rate`: [tokens, heads, v_dim] for its columns
  Tensor slopes;     // [heads, k_dim, v_dim], which by_column is multiplied with; undefined: ones
  Tensor beta;       // [tokens, heads], with the delta rule
};

// o fp32 [tokens, heads, v_dim]. Sequence s is the rows [cu_seqlens[s], cu_seqlens[s + 1]); `states`, fp32 [sequences,
// heads, k_dim, v_dim], are what they begin with (undefined: zero) and are overwritten with what they end with. States
// have no gradient.
Tensor recurrence(const RecurrenceSpec& spec, const RecurrenceTensors& in, const std::vector<int64_t>& cu_seqlens,
                  const Tensor& states = {});

// The running maximum m_t = max(m_{t-1} + f_t, i_t) of f, i [tokens, channels] (arXiv 2405.04517): the exponent by
// which sums of exponentials stay in range. `before` is m_{t-1}, -infinity where a sequence begins. fp32, no gradient.
// `states` [sequences, channels] as above.
struct RunningMaximum {
  Tensor after, before;
};
RunningMaximum running_maximum(const Tensor& f, const Tensor& i, const std::vector<int64_t>& cu_seqlens,
                               const Tensor& states = {});

}  // namespace easydel::ops
