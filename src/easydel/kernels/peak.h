// What this machine can do at most, measured: the ceilings that `doctor`, the benchmarks and the trainer's share of
// peak stand under.
#pragma once

#include "easydel/kernels/executor.h"

namespace easydel::kernels {

struct Peaks {
  int threads = 1;
  double fp32_gflops = 0;     // fused multiply-adds in registers, two operations each
  double bf16_gflops = 0;     // of what a bf16 product runs on: the tile instruction, else the fp32 units
  double int8_gops = 0;       // of the tile or the VNNI instruction; 0 where there is neither
  double read_gigabytes = 0;  // a second, from memory, beyond the caches
};

// On the executor's team with isa(); about 0.2 s. Best of a few runs, so that a busy neighbour counts little.
Peaks measure_peaks(Executor& executor);

}  // namespace easydel::kernels
