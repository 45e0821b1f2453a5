// Asks for the tile registers of AMX.
#include "easydel/kernels/tile_support.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace easydel::kernels {

TileSupport tile_support() {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return TileSupport::none;
  constexpr unsigned bf16 = 1u << 22, tiles = 1u << 24, int8 = 1u << 25;
  if (~d & (bf16 | tiles | int8)) return TileSupport::none;
  constexpr long request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0 ? TileSupport::granted : TileSupport::refused;
}

}  // namespace easydel::kernels
