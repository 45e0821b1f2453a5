// Whether there are tiles to compute with; what else an instruction set needs is isa.h's business.
#pragma once

#include <cstdint>

namespace easydel::kernels {

// `refused`: the processor has tiles for bf16 and bytes, but the system does not grant this process their registers.
enum class TileSupport : uint8_t { none, refused, granted };

// Asks the processor and the system, and so has the registers granted. Its file holds nothing else: tests put an
// emulator in its place.
TileSupport tile_support();

}  // namespace easydel::kernels
