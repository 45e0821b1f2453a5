// What peak.cpp measures, for a vector type V. Included by loops_<set>.cpp only.
#pragma once

#include <cstdint>

namespace easydel::kernels {

template <class V>
struct PeakLoops {
  // Multiply-adds in independent chains; returns the number of operations. `keep` uses the result, so that it is
  // computed.
  static double multiply_add(int64_t rounds, float* keep) {
    constexpr int chains = V::registers == 32 ? 24 : 12;
    typename V::F sums[chains];
    for (int i = 0; i < chains; ++i) sums[i] = V::set1(keep[0] + float(i));
    const typename V::F a = V::set1(keep[1]), b = V::set1(keep[2]);
    for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 24
      for (int i = 0; i < chains; ++i) sums[i] = V::fma(sums[i], a, b);
    for (int i = 1; i < chains; ++i) sums[0] = V::add(sums[0], sums[i]);
    float all[16] = {};
    V::store(all, sums[0]);
    keep[0] = all[0];
    return 2.0 * chains * V::width * double(rounds);
  }

  // Reads `count` floats (a multiple of 256).
  static void read(const float* p, int64_t count, float* keep) {
    constexpr int64_t step = 256 / V::width;
    typename V::F sums[8];
    for (auto& sum : sums) sum = V::zero();
    for (int64_t i = 0; i < count; i += 256, p += 256) {
      for (int64_t line = 0; line < 256; line += 16) V::prefetch(p + 1024 + line);
#pragma GCC unroll 32
      for (int64_t j = 0; j < step; ++j) sums[j % 8] = V::add(sums[j % 8], V::load(p + j * V::width));
    }
    for (int i = 1; i < 8; ++i) sums[0] = V::add(sums[0], sums[i]);
    float all[16] = {};
    V::store(all, sums[0]);
    keep[0] = all[0];
  }
};

}  // namespace easydel::kernels
