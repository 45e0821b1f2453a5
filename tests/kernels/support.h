// Shared by the tests of kernels: numbers as inputs, comparison of bits, every instruction set and thread pool of the
// machine.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "easydel/kernels/dtype.h"
#include "easydel/kernels/executor.h"
#include "easydel/kernels/isa.h"

namespace easydel::kernels::testing {

inline std::vector<float> normal(int64_t count, unsigned seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> one;
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) x = one(generator) * scale;
  return out;
}

// Normal numbers mixed with zeros of both signs, denormals, and magnitudes from 1e-30 to 1e15.
inline std::vector<float> hostile(int64_t count, unsigned seed) {
  std::vector<float> out = normal(count, seed);
  std::mt19937 generator(seed + 1);
  for (float& x : out) {
    const unsigned kind = generator() % 16;
    if (kind == 0)
      x = 0;
    else if (kind == 1)
      x = -0.0f;
    else if (kind == 2)
      x *= 1e-39f;
    else if (kind == 3)
      x *= 1e-30f;
    else if (kind == 4)
      x *= 1e-20f;
    else if (kind == 5)
      x *= 1e15f;
  }
  return out;
}

inline std::vector<bf16> narrowed(const std::vector<float>& x) {
  std::vector<bf16> out;
  for (const float v : x) out.push_back(narrow(v));
  return out;
}
inline std::vector<float> widened(const std::vector<bf16>& x) {
  std::vector<float> out;
  for (const bf16 v : x) out.push_back(widen(v));
  return out;
}

template <class T>
::testing::AssertionResult same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " against " << b.size() << " elements";
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0)
      return ::testing::AssertionFailure()
             << "element " << i << " of " << a.size() << ": " << widen(a[i]) << " against " << widen(b[i]);
  return ::testing::AssertionSuccess();
}

// Calls check() under each instruction set of this machine.
inline void on_every_isa(const std::function<void()>& check) {
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(std::string(name(isa)));
    const UseIsa use(isa);
    check();
  }
}

// A team of two of each kind.
inline Executor& pool_of_two() {
  static const std::unique_ptr<Executor> pool = make_pool(2);
  return *pool;
}
inline Executor& pool_of_five() {
  static const std::unique_ptr<Executor> pool = make_pool(5);
  return *pool;
}

}  // namespace easydel::kernels::testing
