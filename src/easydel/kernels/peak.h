// Measures what this machine can do at most: the ceilings for `doctor`, the benchmarks, and the trainer's share of the
// peak.
#pragma once

#include "easydel/kernels/executor.h"

namespace easydel::kernels {

struct Peaks {
  int threads = 1;
  double fp32_gflops = 0;     // FMAs in registers; an FMA is two operations
  double bf16_gflops = 0;     // of the instruction that bf16 products use: tiles, pairs, or fp32 FMAs
  double int8_gops = 0;       // of tiles or VNNI; 0 without either
  double read_gigabytes = 0;  // per second, from memory
};

// Measured on the executor with isa(); takes about 0.2 s. Best of a few runs, so that other processes matter little.
Peaks measure_peaks(Executor& executor);

}  // namespace easydel::kernels
