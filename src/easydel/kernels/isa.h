// Which instruction set the kernels run on: found at start, forced by EASYDEL_ISA. What a kernel computes does not
// depend on it: every set gives the bits of `reference`, plain C++ with std::fma.
#pragma once

#include <span>
#include <string_view>

namespace easydel::kernels {

// In rising order; a machine that has one has those before it.
enum class Isa { reference, avx2, avx512, avx512_vnni, amx };

std::string_view name(Isa isa);

// What this machine can run, `reference` first. AMX counts only if the system grants the tile registers (asked for
// once).
std::span<const Isa> available_isas();

// The set in use: EASYDEL_ISA if it is set, else the last of available_isas(). Throws UserError for a value that names
// no set or one that this machine lacks.
Isa isa();

// What EASYDEL_ISA=`text` means here; empty is the best there is. Throws as isa() does.
Isa choose_isa(std::string_view text);

// Why `amx` is not among them; empty where it is.
std::string_view why_no_tiles();

// Whether products of pairs of bf16 (VDPBF16PS) are faster than FMAs: twice their rate on AMD's processors, half of it
// on Intel's.
bool has_fast_pairs();

// Another set while one of these lives, for tests and measurements; for the whole process, so not beside running
// kernels.
class UseIsa {
 public:
  explicit UseIsa(Isa isa);
  ~UseIsa();
  UseIsa(const UseIsa&) = delete;
  UseIsa& operator=(const UseIsa&) = delete;

 private:
  Isa before_;
};

// Denormal inputs and results count as zero on this thread while one of these lives: what the tile instruction
// TDPBF16PS always does.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned before_;
};

}  // namespace easydel::kernels
