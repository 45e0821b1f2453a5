// Number formats of cached keys and values. A face: no torch.
#pragma once

#include <compare>
#include <cstdint>

namespace easydel::nn {

// int8, int4_values and e4m3 are codes with fp32 scales for each token and head; see nn/memory.h.
enum class CacheFormat : uint8_t {
  automatic,  // the computation's dtype
  fp32,
  bf16,
  int8,
  int4_values,  // and int8 keys
  e4m3
};

struct CacheSetting {
  CacheFormat format = CacheFormat::automatic;
  int64_t group_size = 0;  // number of codes that share a scale; 0: those of a token and head

  CacheSetting(CacheFormat of = CacheFormat::automatic, int64_t group = 0) : format(of), group_size(group) {}
  auto operator<=>(const CacheSetting&) const = default;
};

}  // namespace easydel::nn
