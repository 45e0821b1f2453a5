// Reference of ops::recurrence in torch's operations and in v's dtype: for devices without a kernel, and for tests in
// double precision.
#pragma once

#include "easydel/ops/recurrence.h"

namespace easydel::ops {

Tensor recurrence_reference(const RecurrenceSpec& spec, const RecurrenceTensors& in,
                            const std::vector<int64_t>& cu_seqlens, const Tensor& states = {});

}  // namespace easydel::ops
