// Number formats of cached keys and values. A face: no torch.
#pragma once

#include <cstdint>

namespace easydel::nn {

// int8, int4_values and e4m3 are codes with an fp32 scale for each token and head; see nn/memory.h.
enum class CacheFormat : uint8_t {
  automatic,  // the computation's dtype
  fp32,
  bf16,
  int8,
  int4_values,  // and int8 keys
  e4m3
};

}  // namespace easydel::nn
