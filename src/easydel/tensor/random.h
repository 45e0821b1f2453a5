// Random numbers as functions of a key and a counter (Philox 4x32-10, doi:10.1145/2063384.2063405): they do not depend
// on how the work is partitioned or on the machine.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include "easydel/tensor/torch.h"

namespace easydel::tensor {

struct Key {
  uint32_t low = 0, high = 0;
};

// The key of a seed and a name ("initial/model.norm.weight"): FNV-1a of the name, mixed with the seed.
Key key_of(uint64_t seed, std::string_view name);

std::array<uint32_t, 4> philox(Key key, uint64_t counter, uint64_t counter_high = 0);

// Uniform in [0, 1), 24 bits.
inline float uniform(uint32_t bits) { return float(bits >> 8) * 0x1p-24f; }

// Element i of the global tensor is f(key, i), normal with mean 0 and standard deviation `deviation`. `out` is a CPU
// tensor of any floating dtype and holds the slice [begin, begin + out's size) of a global tensor of shape `shape`.
void fill_normal(const Tensor& out, Key key, double deviation, at::IntArrayRef shape, at::IntArrayRef begin);
// As above, but an element is `element(i, u)` of its index i along the last dimension and a uniform random number u of
// its own.
void fill_each(const Tensor& out, Key key, const std::function<double(int64_t last, double uniform)>& element,
               at::IntArrayRef shape, at::IntArrayRef begin);

}  // namespace easydel::tensor
