// The instruction set of the kernels: detected at start, overridden by EASYDEL_ISA. Results do not depend on it: every
// set has the bits of `reference`, which is plain C++ with std::fma.
#pragma once

#include <span>
#include <string_view>

namespace easydel::kernels {

// In ascending order; a machine that has one also has the earlier ones.
enum class Isa { reference, avx2, avx512, avx512_vnni, amx };

std::string_view name(Isa isa);

// Sets that this machine can run, `reference` first. AMX counts only if the system grants the tile registers, which is
// requested once.
std::span<const Isa> available_isas();

// The set in use: EASYDEL_ISA if it is set, otherwise the last of available_isas(). Throws UserError for a value that
// names no set, or one that this machine lacks.
Isa isa();

// Meaning of EASYDEL_ISA=`text` on this machine; empty: the best set. Throws as isa() does.
Isa choose_isa(std::string_view text);

// Why `amx` is not available; empty if it is.
std::string_view why_no_tiles();

// True if products of bf16 pairs (VDPBF16PS) are faster than FMAs: they run at twice the rate on AMD's processors, and
// at half of it on Intel's.
bool has_fast_pairs();

// Uses another set as long as the guard lives, for tests and benchmarks. It affects the whole process: do not use it
// while kernels run.
class UseIsa {
 public:
  explicit UseIsa(Isa isa);
  ~UseIsa();
  UseIsa(const UseIsa&) = delete;
  UseIsa& operator=(const UseIsa&) = delete;

 private:
  Isa before_;
};

// Denormal inputs and results count as zero on this thread as long as the guard lives. The tile instruction TDPBF16PS
// always behaves like this.
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
