// The tile registers of AMX on a machine without them, for tests. A program that links the emulator, or loads it first
// (LD_PRELOAD=libeasydel_tiles.so), has the instruction set `amx` wherever it has AVX-512 with VNNI and BF16: each tile
// instruction raises SIGILL, and the handler does what the manual says and steps over it. Where the processor has tiles
// they are used, and nothing here runs.
#pragma once

#include <cstdint>

namespace easydel::test {

// Whether tiles are emulated in this process.
bool emulates_tiles();

// Tile products that were emulated so far, on all threads: of pairs of bf16, and of bytes.
struct TileProducts {
  uint64_t bf16 = 0, bytes = 0;
};
TileProducts emulated_products();

}  // namespace easydel::test
