// Detects the instruction set; the only file that reads EASYDEL_ISA.
#include "easydel/kernels/isa.h"

#include <immintrin.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/tile_support.h"

namespace easydel::kernels {

namespace {

constexpr std::string_view isa_names[] = {"reference", "avx2", "avx512", "avx512_vnni", "amx"};

std::vector<Isa> find_isas() {
  __builtin_cpu_init();
  std::vector<Isa> found{Isa::reference};
  // Every processor with AVX2 has F16C, too.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return found;
  found.push_back(Isa::avx2);
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
    return found;
  found.push_back(Isa::avx512);
  if (!__builtin_cpu_supports("avx512vnni")) return found;
  found.push_back(Isa::avx512_vnni);
  if (__builtin_cpu_supports("avx512bf16") && tile_support() == TileSupport::granted) found.push_back(Isa::amx);
  return found;
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa = [] {
    const char* const text = std::getenv("EASYDEL_ISA");
    return choose_isa(text ? text : "");
  }();
  return isa;
}

}  // namespace

std::string_view name(Isa isa) { return isa_names[int(isa)]; }

std::span<const Isa> available_isas() {
  static const std::vector<Isa> isas = find_isas();
  return isas;
}

Isa choose_isa(std::string_view text) {
  const auto isas = available_isas();
  if (text.empty()) return isas.back();
  std::string have;
  for (const Isa isa : isas) {
    if (name(isa) == text) return isa;
    have += (have.empty() ? "" : ", ") + std::string(name(isa));
  }
  bool known = false;
  for (const std::string_view one : isa_names) known |= one == text;
  refuse("EASYDEL_ISA",
         known ? str("this machine cannot run '", text, "'") : str("'", text, "' is not an instruction set"),
         "it has " + have);
}

std::string_view why_no_tiles() {
  if (available_isas().back() == Isa::amx) return "";
  switch (tile_support()) {
    case TileSupport::none:
      return "the processor has no tiles";
    case TileSupport::refused:
      return "the system does not grant the tile registers";
    case TileSupport::granted:
      return "the tiles also need AVX-512 with VNNI and BF16";
  }
  __builtin_unreachable();
}

bool has_fast_pairs() {
  __builtin_cpu_init();
  return available_isas().back() >= Isa::avx512_vnni && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd");
}

Isa isa() { return current().load(std::memory_order_relaxed); }

UseIsa::UseIsa(Isa isa) : before_(current().exchange(isa)) {}
UseIsa::~UseIsa() { current() = before_; }

FlushDenormals::FlushDenormals() : before_(_mm_getcsr()) {
  constexpr unsigned denormals_are_zero = 0x40, flush_to_zero = 0x8000;
  _mm_setcsr(before_ | denormals_are_zero | flush_to_zero);
}
FlushDenormals::~FlushDenormals() { _mm_setcsr(before_); }

}  // namespace easydel::kernels
