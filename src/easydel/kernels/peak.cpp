// Times the loops of peak_loops.h and the instructions for bytes.
#include "easydel/kernels/peak.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "easydel/base/clock.h"
#include "easydel/kernels/isa.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"

namespace easydel::kernels {

namespace {

[[gnu::target("avx512f,avx512vnni")]] double multiply_bytes(int64_t rounds, float* keep) {
  constexpr int chains = 24;
  __m512i sums[chains];
#pragma GCC unroll 24
  for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_epi32(i);
  const __m512i a = _mm512_set1_epi32(int(keep[1])), b = _mm512_set1_epi32(int(keep[2]));
  for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 24
    for (int i = 0; i < chains; ++i)  // of the intrinsic g++ 12 moves the sums to and from memory
      asm("vpdpbusd %2, %1, %0" : "+v"(sums[i]) : "v"(a), "v"(b));
#pragma GCC unroll 24
  for (int i = 1; i < chains; ++i) sums[0] = _mm512_add_epi32(sums[0], sums[i]);
  alignas(64) int all[16];
  _mm512_store_si512(all, sums[0]);
  keep[0] = float(all[0]);
  return 2.0 * chains * 64 * double(rounds);
}

// Billions per second of what work(rounds, keep) reports, on all threads at once: the best of a few runs of about 4 ms.
template <class Work>
double measure(Executor& executor, const Work& work) {
  struct alignas(64) Keep {
    float values[16] = {1, 1, 1e-9f};
  };
  std::vector<Keep> keep(size_t(executor.size()));
  int64_t rounds = 1000;
  for (;;) {
    const auto begin = Clock::now();
    work(rounds, keep[0].values);
    const double seconds = seconds_since(begin);
    if (seconds > 5e-4) {
      rounds = std::max<int64_t>(1, int64_t(double(rounds) * 4e-3 / seconds));
      break;
    }
    rounds *= 4;
  }
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    std::vector<double> done(keep.size());
    const auto begin = Clock::now();
    executor.run(int64_t(keep.size()),
                 [&](int64_t part) { done[size_t(part)] = work(rounds, keep[size_t(part)].values); });
    const double seconds = seconds_since(begin);
    double all = 0;
    for (const double one : done) all += one;
    best = std::max(best, all / seconds * 1e-9);
  }
  return best;
}

double measure_read(Executor& executor) {
  constexpr int64_t piece = 1 << 18, pieces = 256, floats = piece * pieces;  // 256 MiB
  const Buffer<float> memory = allocate<float>(floats + piece);
  const Loops& isa = loops();
  executor.run(pieces, [&](int64_t part) { std::memset(memory.get() + part * piece, 0, piece * sizeof(float)); });
  double best = 0;
  for (int run = 0; run < 3; ++run) {
    const auto begin = Clock::now();
    executor.run(pieces, [&](int64_t part) {
      float keep[16];
      isa.peak.read(memory.get() + part * piece, piece, keep);
      volatile float kept = keep[0];
      static_cast<void>(kept);
    });
    best = std::max(best, double(floats) * sizeof(float) / seconds_since(begin) * 1e-9);
  }
  return best;
}

}  // namespace

Peaks measure_peaks(Executor& executor) {
  Peaks peaks{.threads = executor.size()};
  peaks.fp32_gflops = measure(executor, loops().peak.multiply_add);
  peaks.bf16_gflops = loops().peak.bf16 ? measure(executor, loops().peak.bf16) : peaks.fp32_gflops;
  if (isa() >= Isa::avx512_vnni)
    peaks.int8_gops = measure(executor, loops().peak.int8 ? loops().peak.int8 : multiply_bytes);
  peaks.read_gigabytes = measure_read(executor);
  return peaks;
}

}  // namespace easydel::kernels
