// The part of `easydel doctor` about libtorch. Without torch itself; doctor_core.cpp measures.
#pragma once

#include <string>

namespace easydel::elarge {

struct TorchReport {
  std::string version;     // "2.13.0"
  bool gpu = false;        // torch finds a usable GPU
  double fp32_gflops = 0;  // torch's own matrix product, 512 x 2048 by 2048 x 2048, all threads
  double bf16_gflops = 0;
};

// Lines, with a warning if the BLAS is slow relative to `peak_gflops` (fp32, all threads, measured; 0: unknown).
std::string describe(const TorchReport& torch, double peak_gflops);

// Measures for about half a second and describes the result. In libeasydel_core.so; call it through elarge::core().
std::string doctor_core(double peak_gflops);

}  // namespace easydel::elarge
