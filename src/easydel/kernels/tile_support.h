// Whether tile instructions are available. isa.h covers everything else that an instruction set needs.
#pragma once

#include <cstdint>

namespace easydel::kernels {

// `refused`: the processor has tiles for bf16 and bytes, but the system does not grant this process their registers.
enum class TileSupport : uint8_t { none, refused, granted };

// Asks the processor and the system, and requests the registers. Nothing else is in its file, so that tests can replace
// it by an emulator.
TileSupport tile_support();

}  // namespace easydel::kernels
