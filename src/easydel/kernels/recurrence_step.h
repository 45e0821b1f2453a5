// One head of one range of a recurrence, as the loops receive it.
#pragma once

#include "easydel/kernels/recurrence.h"

namespace easydel::kernels {

struct RecurrenceStep {
  const RecurrenceSpec& spec;
  const RecurrenceInputs& in;
  int64_t head = 0;
  int64_t columns = 0;  // v_dim rounded up to sixteens: row length of a state in scratch, padded with zeros

  int64_t group() const { return head / (spec.heads / spec.groups); }
  const float* q(int64_t t) const { return in.q + (t * spec.groups + group()) * spec.k_dim; }
  const float* k(int64_t t) const { return in.k + (t * spec.groups + group()) * spec.k_dim; }
  const float* v(int64_t t) const { return in.v + at_values(t); }
  int64_t at_values(int64_t t) const { return (t * spec.heads + head) * spec.v_dim; }
  int64_t at_keys(int64_t t) const { return (t * spec.heads + head) * spec.k_dim; }
  int64_t at_head(int64_t t) const { return t * spec.heads + head; }
};

}  // namespace easydel::kernels
