// Decodes and executes the tile instructions as Intel's manual (volume 2) describes them; the arithmetic of TDPBF16PS
// is that of kernels/accumulation_order.h. What the manual forbids ends the process, as it does on hardware.
#include "support/tiles/emulator.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <immintrin.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "easydel/kernels/isa.h"
#include "easydel/kernels/tile_support.h"

// g++ 12 warns of the undefined registers in its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace easydel::test {
namespace {

constexpr int tiles = 8, max_rows = 16, row_bytes = 64;

// What LDTILECFG reads and STTILECFG writes.
struct Config {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes_per_row[16];
  uint8_t rows[16];
};
static_assert(sizeof(Config) == 64);

struct Registers {
  Config config;
  alignas(64) uint8_t tile[tiles][max_rows][row_bytes];
};
// Of the thread that is interrupted; initial-exec, so that a signal handler may touch it.
[[gnu::tls_model("initial-exec")]] thread_local Registers registers;

std::atomic<bool> emulating = false;
struct Counts {
  std::atomic<uint64_t> bf16, bytes;
};
static_assert(sizeof(Counts) == 16);
Counts own_counts;
Counts* counts = &own_counts;

enum Prefix : int { none = 0, x66 = 1, xf3 = 2, xf2 = 3 };

struct Instruction {
  uint8_t opcode = 0;
  int prefix = 0, reg = 0, rm = 0, vvvv = 0, length = 0;
  bool memory = false;
  bool scaled_index = false;  // a SIB byte was there
  uint8_t* address = nullptr;
  int64_t stride = 0;  // the scaled index, which `address` does not hold
};

// A VEX-encoded instruction of map 0F38 at `code`; its registers are read from `gregs`.
bool decode(const uint8_t* code, const greg_t* gregs, Instruction& out) {
  static constexpr int of_number[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                        REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  const auto value = [&](int number) { return int64_t(gregs[of_number[number]]); };
  if (code[0] != 0xc4 || (code[1] & 0x1f) != 2) return false;
  const int r = code[1] & 0x80 ? 0 : 8, x = code[1] & 0x40 ? 0 : 8, b = code[1] & 0x20 ? 0 : 8;
  if (code[2] & 0x84) return false;  // W and L are 0
  out.vvvv = ~(code[2] >> 3) & 15, out.prefix = code[2] & 3, out.opcode = code[3];
  const uint8_t modrm = code[4];
  const int mode = modrm >> 6, low = modrm & 7;
  out.reg = (modrm >> 3 & 7) | r, out.rm = low | b, out.memory = mode != 3;
  const uint8_t* at = code + 5;
  if (out.memory) {
    int64_t base = 0;
    bool wide = mode == 2, next = false;
    if (low == 4) {
      const uint8_t sib = *at++;
      const int index = (sib >> 3 & 7) | x;
      out.scaled_index = true;
      out.stride = index == 4 ? 0 : int64_t(uint64_t(value(index)) << (sib >> 6));
      if ((sib & 7) == 5 && mode == 0)
        wide = true;
      else
        base = value((sib & 7) | b);
    } else if (low == 5 && mode == 0) {
      wide = next = true;  // from the next instruction on
    } else {
      base = value(out.rm);
    }
    if (wide) {
      int32_t distance;
      std::memcpy(&distance, at, 4), at += 4;
      base += distance;
    } else if (mode == 1) {
      base += int8_t(*at++);
    }
    if (next) base += int64_t(at);
    out.address = reinterpret_cast<uint8_t*>(base);
  }
  out.length = int(at - code);
  return true;
}

bool configured() { return registers.config.palette == 1; }

// Whether the configuration gives the tile a size.
bool usable(int tile) { return configured() && tile < tiles && registers.config.rows[tile] > 0; }

bool load_config(const Instruction& in) {
  Config config;
  std::memcpy(&config, in.address, sizeof config);
  if (config.palette > 1) return false;
  for (const uint8_t byte : config.reserved)
    if (byte != 0) return false;
  for (int t = 0; t < 16; ++t) {
    const int rows = config.rows[t], bytes = config.bytes_per_row[t];
    if (rows > max_rows || bytes > row_bytes || (rows == 0) != (bytes == 0)) return false;
    if (t >= tiles && rows != 0) return false;
  }
  std::memset(&registers, 0, sizeof registers);
  if (config.palette == 1) registers.config = config;
  return true;
}

bool move_rows(const Instruction& in, bool load) {
  if (!in.scaled_index || in.vvvv != 0 || !usable(in.reg)) return false;
  auto& tile = registers.tile[in.reg];
  const size_t bytes = registers.config.bytes_per_row[in.reg];
  if (load) std::memset(tile, 0, sizeof tile);
  for (int r = 0; r < registers.config.rows[in.reg]; ++r) {
    uint8_t* const line = in.address + r * in.stride;
    load ? std::memcpy(tile[r], line, bytes) : std::memcpy(line, tile[r], bytes);
  }
  return true;
}

[[gnu::target("avx512f,avx512bw")]] void multiply_bf16(int sums, int left, int right) {
  const kernels::FlushDenormals as_always;
  const __m512i high = _mm512_set1_epi32(int(0xffff0000));
  const __mmask16 own = __mmask16((1u << registers.config.bytes_per_row[sums] / 4) - 1);
  for (int r = 0; r < registers.config.rows[sums]; ++r) {
    __m512 even = _mm512_setzero_ps(), odd = even;
    for (int j = 0; j < registers.config.bytes_per_row[left] / 4; ++j) {
      int pair;
      std::memcpy(&pair, registers.tile[left][r] + 4 * j, 4);
      const __m512i x = _mm512_set1_epi32(pair), w = _mm512_loadu_si512(registers.tile[right][j]);
      even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)),
                             _mm512_castsi512_ps(_mm512_slli_epi32(w, 16)), even);
      odd = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(x, high)),
                            _mm512_castsi512_ps(_mm512_and_si512(w, high)), odd);
    }
    float* const to = reinterpret_cast<float*>(registers.tile[sums][r]);
    _mm512_mask_storeu_ps(to, own, _mm512_add_ps(_mm512_loadu_ps(to), _mm512_add_ps(even, odd)));
  }
}

template <class Left, class Right>
[[gnu::target("avx512f,avx512bw")]] void multiply_bytes(int sums, int left, int right) {
  for (int r = 0; r < registers.config.rows[sums]; ++r) {
    uint32_t to[row_bytes] = {};  // of each of the four bytes of a column
    for (int j = 0; j < registers.config.bytes_per_row[left] / 4; ++j) {
      int x[row_bytes];
      for (int i = 0; i < row_bytes; ++i) x[i] = int(Left(registers.tile[left][r][4 * j + i % 4]));
      for (int i = 0; i < row_bytes; ++i) to[i] += uint32_t(x[i] * int(Right(registers.tile[right][j][i])));
    }
    for (int c = 0; c < registers.config.bytes_per_row[sums] / 4; ++c) {
      uint32_t sum;
      uint8_t* const at = registers.tile[sums][r] + 4 * c;
      std::memcpy(&sum, at, sizeof sum);
      for (int i = 0; i < 4; ++i) sum += to[4 * c + i];
      std::memcpy(at, &sum, sizeof sum);
    }
  }
}

bool multiply(const Instruction& in) {
  const int sums = in.reg, left = in.rm, right = in.vvvv;
  if (in.memory || sums == left || sums == right || left == right) return false;
  if (!usable(sums) || !usable(left) || !usable(right)) return false;
  const Config& config = registers.config;
  for (const int tile : {sums, left, right})
    if (config.bytes_per_row[tile] % 4 != 0) return false;
  if (config.rows[sums] != config.rows[left] || config.bytes_per_row[sums] != config.bytes_per_row[right] ||
      config.bytes_per_row[left] / 4 != config.rows[right])
    return false;
  if (in.opcode == 0x5c) {
    if (in.prefix != xf3) return false;
    multiply_bf16(sums, left, right);
    counts->bf16.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  if (in.prefix == xf2) multiply_bytes<int8_t, int8_t>(sums, left, right);
  if (in.prefix == xf3) multiply_bytes<int8_t, uint8_t>(sums, left, right);
  if (in.prefix == x66) multiply_bytes<uint8_t, int8_t>(sums, left, right);
  if (in.prefix == none) multiply_bytes<uint8_t, uint8_t>(sums, left, right);
  counts->bytes.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// False: no tile instruction, or one that the manual forbids here.
bool execute(const Instruction& in) {
  switch (in.opcode) {
    case 0x49:
      if (in.vvvv != 0) return false;
      if (in.memory && in.prefix == none && in.reg == 0) return load_config(in);
      if (in.memory && in.prefix == x66 && in.reg == 0) {
        std::memcpy(in.address, &registers.config, sizeof(Config));
        return true;
      }
      if (!in.memory && in.prefix == none && in.reg == 0 && in.rm == 0) {
        std::memset(&registers, 0, sizeof registers);
        return true;
      }
      if (!in.memory && in.prefix == xf2 && in.rm == 0 && usable(in.reg)) {
        std::memset(registers.tile[in.reg], 0, sizeof registers.tile[in.reg]);
        return true;
      }
      return false;
    case 0x4b:
      if (!in.memory || in.prefix == none) return false;
      return move_rows(in, in.prefix != xf3);
    case 0x5c:
    case 0x5e:
      return multiply(in);
    default:
      return false;
  }
}

void on_illegal_instruction(int, siginfo_t*, void* context) {
  greg_t* const gregs = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto step = [&] {
    Instruction in;
    if (!decode(reinterpret_cast<const uint8_t*>(gregs[REG_RIP]), gregs, in) || !execute(in)) return false;
    gregs[REG_RIP] += in.length;
    return true;
  };
  if (step()) {
    while (step()) continue;  // the next instruction needs no signal of its own
    return;
  }
  static constexpr char text[] =
      "tile emulator: an instruction that is not a tile instruction or is not allowed here\n";
  [[maybe_unused]] const auto written = ::write(2, text, sizeof text - 1);
  ::signal(SIGILL, SIG_DFL);  // raised once more on return
}

// If EASYDEL_TEST_TILE_PRODUCTS names a file, the counts are mapped into it, because a program may end without running
// destructors.
void count_in_file() {
  const char* const path = std::getenv("EASYDEL_TEST_TILE_PRODUCTS");
  const int file = path ? ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (file < 0) return;
  if (::ftruncate(file, sizeof(Counts)) == 0) {
    void* const shared = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED) counts = static_cast<Counts*>(shared);
  }
  ::close(file);
}

}  // namespace

bool emulates_tiles() { return emulating; }

TileProducts emulated_products() { return {counts->bf16, counts->bytes}; }

}  // namespace easydel::test

namespace easydel::kernels {

// Replaces the library's function: symbols of the program, and of libraries loaded first, take precedence.
TileSupport tile_support() {
  const auto of_library = reinterpret_cast<TileSupport (*)()>(dlsym(RTLD_NEXT, "_ZN7easydel7kernels12tile_supportEv"));
  if (of_library && of_library() == TileSupport::granted) return TileSupport::granted;
  if (!test::emulating.exchange(true)) {
    test::count_in_file();
    struct sigaction action = {};
    action.sa_sigaction = test::on_illegal_instruction;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGILL, &action, nullptr);
  }
  return TileSupport::granted;
}

}  // namespace easydel::kernels
