// Speed of the kernels compared with the machine's measured peaks: `kernels_bench [product] [gradients] [attention]
// [decode] [fused]`, all by default, on 1 thread and on all (OMP_NUM_THREADS). bench/kernels_torch.py measures torch.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "easydel/kernels/attention.h"
#include "easydel/kernels/fused.h"
#include "easydel/kernels/isa.h"
#include "easydel/kernels/peak.h"
#include "easydel/kernels/product.h"

namespace {

using namespace easydel::kernels;

Peaks peaks;

// Seconds per call, the best of about 0.25 s: what the machine can do, regardless of other load.
double seconds_of(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  double all = 0;
  call();
  while (times.size() < 3 || (all < 0.25 && times.size() < 1000)) {
    const auto begin = Clock::now();
    call();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    all += times.back();
  }
  return *std::ranges::min_element(times);
}

void show_flops(const std::string& what, double flops, double seconds, double peak) {
  std::printf("  %-58s %9.3f ms %8.1f GFLOP/s %5.1f %% of peak\n", what.c_str(), seconds * 1e3, flops / seconds * 1e-9,
              100 * flops / seconds * 1e-9 / peak);
}
void show_bytes(const std::string& what, double bytes, double seconds) {
  std::printf("  %-58s %9.3f ms %8.1f GB/s    %5.1f %% of read\n", what.c_str(), seconds * 1e3, bytes / seconds * 1e-9,
              100 * bytes / seconds * 1e-9 / peaks.read_gigabytes);
}

std::vector<float> numbers(int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  uint32_t state = 12345;
  for (float& x : out) state = state * 1664525 + 1013904223, x = float(state >> 8) * 0x1p-23f - 1;
  return out;
}
std::vector<bf16> short_numbers(int64_t count) {
  std::vector<bf16> out;
  out.reserve(size_t(count));
  for (const float x : numbers(count)) out.push_back(narrow(x));
  return out;
}

struct Shape {
  int64_t n, k;
};
const Shape shapes[] = {{576, 576}, {1536, 576}, {576, 1536}, {49152, 576}, {2048, 2048}};

std::string name_of(int64_t m, const Shape& s, const char* kind) {
  return std::to_string(m) + " rows, " + std::to_string(s.n) + " x " + std::to_string(s.k) + ", " + kind;
}

void bench_product(Executor& executor) {
  struct Kind {
    const char* text;
    DType weight;
    AccumulationOrder order;
  };
  for (const Kind kind :
       {Kind{"fp32", DType::f32, AccumulationOrder::fp32_chain}, Kind{"bf16", DType::bf16, bf16_order()},
        Kind{"bf16 widened", DType::bf16, AccumulationOrder::fp32_chain}})
    for (const Shape& s : shapes) {
      const auto w = numbers(s.n * s.k);
      // One row: enough copies of the weight to exceed the caches.
      std::vector<PackedWeight> packed;
      const int64_t bytes = s.n * s.k * bytes_of(kind.weight);
      for (int64_t i = 0; i < std::max<int64_t>(1, (256 << 20) / bytes); ++i)
        packed.push_back(pack(executor, {w.data(), s.k}, s.n, s.k, kind.weight));
      for (const int64_t m : {1, 512, 1024}) {
        const auto x = numbers(m * s.k);
        std::vector<float> y(size_t(m * s.n));
        size_t next = 0;
        const double seconds = seconds_of([&] {
          product(executor, packed[m == 1 ? next++ % packed.size() : 0], {x.data(), s.k}, m, {y.data(), s.n}, nullptr,
                  kind.order);
        });
        if (m == 1)
          show_bytes(name_of(m, s, kind.text), double(bytes), seconds);
        else
          show_flops(name_of(m, s, kind.text), 2.0 * double(m * s.n * s.k), seconds,
                     kind.order != AccumulationOrder::fp32_chain ? peaks.bf16_gflops : peaks.fp32_gflops);
      }
    }
}

void bench_gradients(Executor& executor) {
  for (const Shape& s : {Shape{1536, 576}, Shape{576, 1536}, Shape{5632, 2048}}) {
    constexpr int64_t m = 1024;
    const auto w = numbers(s.n * s.k), x = numbers(m * s.k), dy = numbers(m * s.n);
    const auto short_w = short_numbers(s.n * s.k), short_x = short_numbers(m * s.k), short_dy = short_numbers(m * s.n);
    std::vector<float> dx(size_t(m * s.k)), dw(size_t(s.n * s.k));
    const double flops = 2.0 * double(m * s.n * s.k);
    show_flops(name_of(m, s, "dx fp32"), flops, seconds_of([&] {
                 product_dx(executor, {dy.data(), s.n}, {w.data(), s.k}, m, s.n, s.k, {dx.data(), s.k}, false);
               }),
               peaks.fp32_gflops);
    show_flops(name_of(m, s, "dw fp32"), flops, seconds_of([&] {
                 product_dw(executor, {dy.data(), s.n}, {x.data(), s.k}, m, s.n, s.k, {dw.data(), s.k}, true);
               }),
               peaks.fp32_gflops);
    show_flops(
        name_of(m, s, "dx bf16"), flops, seconds_of([&] {
          product_dx(executor, {short_dy.data(), s.n}, {short_w.data(), s.k}, m, s.n, s.k, {dx.data(), s.k}, false);
        }),
        peaks.fp32_gflops);
    show_flops(
        name_of(m, s, "dw bf16"), flops, seconds_of([&] {
          product_dw(executor, {short_dy.data(), s.n}, {short_x.data(), s.k}, m, s.n, s.k, {dw.data(), s.k}, true);
        }),
        peaks.fp32_gflops);
  }
}

void bench_attention(Executor& executor) {
  struct Case {
    int64_t sequences, length, heads, kv_heads, dim;
  };
  for (const Case& c : {Case{1, 1024, 8, 8, 64}, Case{2, 512, 9, 3, 64}, Case{1, 4096, 8, 2, 128}}) {
    const int64_t tokens = c.sequences * c.length, q_row = c.heads * c.dim, kv_row = c.kv_heads * c.dim;
    const auto q = numbers(tokens * q_row), k = numbers(tokens * kv_row), v = numbers(tokens * kv_row),
               dout = numbers(tokens * q_row);
    std::vector<float> out(q.size()), lse(size_t(tokens * c.heads)), dq(q.size()), dk(k.size()), dv(v.size());
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i <= c.sequences; ++i) offsets.push_back(i * c.length);
    const auto sequences = sequences_of(offsets.data(), c.sequences);
    const AttentionSpec spec{
        .heads = c.heads, .kv_heads = c.kv_heads, .head_dim = c.dim, .v_dim = c.dim, .scale = 0.125f};
    const Heads q_heads{q.data(), DType::f32, q_row, c.dim}, k_heads{k.data(), DType::f32, kv_row, c.dim},
        v_heads{v.data(), DType::f32, kv_row, c.dim}, dout_heads{dout.data(), DType::f32, q_row, c.dim};
    const MutableHeads out_heads{out.data(), DType::f32, q_row, c.dim};
    const std::string what = std::to_string(c.sequences) + " x " + std::to_string(c.length) + " causal, " +
                             std::to_string(c.heads) + "/" + std::to_string(c.kv_heads) + " heads of " +
                             std::to_string(c.dim);
    const double flops = 2.0 * double(tokens * c.length * q_row);  // causal half only
    show_flops(what + ", forward", flops,
               seconds_of([&] { attend(executor, spec, sequences, q_heads, k_heads, v_heads, out_heads, lse.data()); }),
               peaks.fp32_gflops);
    show_flops(what + ", backward", 2.5 * flops, seconds_of([&] {
                 attend_backward(executor, spec, sequences,
                                 {.q = q_heads,
                                  .k = k_heads,
                                  .v = v_heads,
                                  .out = out_heads,
                                  .dout = dout_heads,
                                  .lse = lse.data(),
                                  .dq = {dq.data(), DType::f32, q_row, c.dim},
                                  .dk = {dk.data(), DType::f32, kv_row, c.dim},
                                  .dv = {dv.data(), DType::f32, kv_row, c.dim}});
               }),
               peaks.fp32_gflops);
  }
}

void bench_decode(Executor& executor) {
  constexpr int64_t heads = 9, kv_heads = 3, dim = 64, layers = 64,
                    row = kv_heads * dim;  // a head's keys are contiguous
  for (const int64_t length : {128, 2048, 8192}) {
    const auto k = short_numbers(layers * length * row), v = short_numbers(layers * length * row);
    const auto q = numbers(heads * dim);
    std::vector<float> out(size_t(heads * dim));
    const AttentionSpec spec{.heads = heads, .kv_heads = kv_heads, .head_dim = dim, .v_dim = dim, .scale = 0.125f};
    int64_t next = 0;
    const double seconds = seconds_of([&] {
      const AttentionSequence s{
          .queries = 1, .past = length - 1, .keys = length, .first_key = next++ % layers * length};
      const int64_t head_stride = layers * length * dim;
      attend(executor, spec, {&s, 1}, {q.data(), DType::f32, heads * dim, dim},
             {k.data(), DType::bf16, dim, head_stride}, {v.data(), DType::bf16, dim, head_stride},
             {out.data(), DType::f32, heads * dim, dim}, nullptr);
    });
    show_bytes("1 query over " + std::to_string(length) + " keys in bf16, 9/3 heads of 64", 4.0 * double(length * row),
               seconds);
  }
}

void bench_fused(Executor& executor) {
  constexpr int64_t rows = 1024, n = 576, wide = 1536, vocabulary = 49152;
  const auto x = numbers(rows * wide), up = numbers(rows * wide), w = numbers(wide);
  std::vector<float> y(x.size()), z(x.size()), kept(2 * rows), dw(wide);
  show_bytes("rms_norm 1024 x 576", 8.0 * rows * n, seconds_of([&] {
               rms_norm(executor, {}, {x.data(), n}, {w.data(), n}, rows, n, {y.data(), n}, kept.data());
             }));
  show_bytes("rms_norm backward 1024 x 576", 12.0 * rows * n, seconds_of([&] {
               rms_norm_backward(executor, {}, {up.data(), n}, {x.data(), n}, {w.data(), n}, kept.data(), rows, n,
                                 {y.data(), n}, dw.data());
             }));
  show_bytes("silu x up 1024 x 1536", 12.0 * rows * wide, seconds_of([&] {
               activate(executor, Activation::silu, {x.data(), wide}, {up.data(), wide}, rows, wide, {y.data(), wide});
             }));
  show_bytes("silu x up backward 1024 x 1536", 20.0 * rows * wide, seconds_of([&] {
               activate_backward(executor, Activation::silu, {w.data(), 0}, {x.data(), wide}, {up.data(), wide}, rows,
                                 wide, {y.data(), wide}, {z.data(), wide});
             }));
  {
    constexpr int64_t heads = 9, pairs = 32;
    const auto table = numbers(rows * pairs);
    show_bytes("rotate 1024 x 9 x 64", 8.0 * rows * n, seconds_of([&] {
                 const MutableHeads heads_of_y{y.data(), DType::f32, n, 64};
                 rotate(executor, heads_of_y, heads_of_y, rows, heads, 64, pairs, table.data(), table.data(), pairs,
                        false, false);
               }));
  }
  {
    constexpr int64_t chunk = 256;
    auto logits = numbers(chunk * vocabulary);
    const std::vector<int64_t> labels(chunk, 7);
    const std::vector<float> scales(chunk, 1.0f);
    std::vector<float> loss(chunk), lse(chunk);
    show_bytes("cross_entropy with gradient 256 x 49152", 8.0 * chunk * vocabulary, seconds_of([&] {
                 cross_entropy(executor, {}, {logits.data(), vocabulary}, labels.data(), chunk, vocabulary, loss.data(),
                               lse.data(), scales.data());
               }));
  }
  {
    constexpr int64_t count = 1 << 24;
    auto p = numbers(count), g = numbers(count);
    std::vector<float> m(count), v(count);
    std::vector<bf16> copy(count);
    show_bytes("adamw 16 M, fp32", 28.0 * count, seconds_of([&] {
                 adamw(executor, {}, count, p.data(), g.data(), DType::f32, m.data(), v.data(), nullptr);
               }));
    show_bytes("adamw 16 M, with a bf16 copy", 30.0 * count, seconds_of([&] {
                 adamw(executor, {}, count, p.data(), g.data(), DType::f32, m.data(), v.data(), copy.data());
               }));
    volatile double sum = 0;
    show_bytes("sum of squares 16 M", 4.0 * count,
               seconds_of([&] { sum = sum_of_squares(executor, g.data(), DType::f32, count); }));
  }
}

}  // namespace

int main(int argc, char** argv) {
  struct Part {
    const char* text;
    void (*run)(Executor&);
  };
  constexpr Part parts[] = {{"product", bench_product},
                            {"gradients", bench_gradients},
                            {"attention", bench_attention},
                            {"decode", bench_decode},
                            {"fused", bench_fused}};
  std::vector<int> teams = {1};
  if (allowed_threads() > 1) teams.push_back(allowed_threads());
  for (const int threads : teams) {
    const auto executor = make_pool(threads);
    peaks = measure_peaks(*executor);
    std::printf("%s, %d thread%s: fp32 %.0f GFLOP/s, bf16 %.0f GFLOP/s, int8 %.0f GOP/s, read %.1f GB/s\n",
                std::string(name(isa())).c_str(), threads, threads > 1 ? "s" : "", peaks.fp32_gflops, peaks.bf16_gflops,
                peaks.int8_gops, peaks.read_gigabytes);
    for (const Part& part : parts) {
      bool wanted = argc == 1;
      for (int i = 1; i < argc; ++i) wanted |= std::strcmp(argv[i], part.text) == 0;
      if (wanted) part.run(*executor);
    }
  }
}
