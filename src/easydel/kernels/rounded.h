// Writes an element in the dtype of its place.
#pragma once

#include "easydel/kernels/dtype.h"

namespace easydel::kernels {

inline void put_rounded(float x, float& to) { to = x; }
inline void put_rounded(float x, bf16& to) { to = narrow(x); }

}  // namespace easydel::kernels
