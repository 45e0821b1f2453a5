// The tile instructions. Inline assembly, not the compiler's intrinsics: those of g++ 12 declare 8 of the 64 bytes of a
// configuration as read, so that its stores are removed and the first tile instruction raises SIGILL.
#pragma once

#include <cstdint>

#include "easydel/kernels/amx_loops.h"

namespace easydel::kernels {

struct HardwareTiles {
  static void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config)); }
  static void release() { asm volatile("tilerelease" ::); }
  template <int tile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  template <int tile>
  static void load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  static void store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(tile) : "memory");
  }
  // sums += left x right, bf16 pairs into fp32.
  template <int sums, int left, int right>
  static void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(left), "i"(right));
  }
  template <int sums, int left, int right>
  static void multiply_bytes() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(left), "i"(right));
  }
};

}  // namespace easydel::kernels
