// The targets of the kernels: each row is a ratio measured in one run (both sides in turns, minimum time of each) and
// its target. Rows against torch need EASYDEL_PEER_PYTHON, a Python with torch (see kernels_torch.py).
// `kernels_targets_bench [words]` runs only the rows whose name contains one of the words. Under two minutes on an idle
// machine with two cores.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "easydel/kernels/attention.h"
#include "easydel/kernels/grouped.h"
#include "easydel/kernels/isa.h"
#include "easydel/kernels/key_pages.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/peak.h"
#include "easydel/kernels/quantized.h"
#include "measure.h"
#include "peer.h"

namespace {

using namespace easydel::kernels;
using Call = std::function<void()>;

// The minimum seconds per call over some milliseconds of calls.
double min_seconds(const Call& call) {
  using Clock = std::chrono::steady_clock;
  double least = 1e9, all = 0;
  for (int i = 0; i < 3 || (all < 0.03 && i < 2000); ++i) {
    const auto begin = Clock::now();
    call();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    least = std::min(least, seconds), all += seconds;
  }
  return least;
}

std::vector<std::string> wanted;
bool want(const std::string& name) {
  return wanted.empty() || std::ranges::any_of(wanted, [&](const auto& w) { return name.find(w) != name.npos; });
}

// least: the target; 0: none on this machine.
void show(const std::string& name, double figure, const char* unit, double ratio, const char* of, double least) {
  std::printf("%-52s %8.1f %-8s %6.2f x %-14s", name.c_str(), figure, unit, ratio, of);
  if (least > 0) std::printf(" at least %.2f%s", least, ratio < least ? "  SHORT" : "");
  std::printf("\n");
  std::fflush(stdout);
}

struct Both {
  double ours, theirs;
};
Both in_turns(const Call& ours, const std::function<double()>& theirs, int rounds = 4) {
  Both least{1e9, 1e9};
  for (int i = 0; i < rounds; ++i) {
    least.ours = std::min(least.ours, min_seconds(ours));
    least.theirs = std::min(least.theirs, theirs());
  }
  return least;
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

// On huge pages, like the program's tensors.
Buffer<bf16> short_tensor(int64_t count) {
  Buffer<bf16> out = allocate<bf16>(count);
  std::ranges::copy(short_numbers(count), out.get());
  return out;
}

// The median of the ratios (seconds of the first call over seconds of the second) of two calls in short turns, so that
// changes of the machine's load affect both.
double middle_ratio(const Call& first, const Call& second) {
  const double least = min_seconds(first);
  const int calls = 1 + int(3e-4 / least);
  const auto seconds = [&](const Call& call) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<double> ratios(size_t(std::clamp(0.2 / (least * calls), 31.0, 401.0)));
  for (double& ratio : ratios) ratio = seconds(first), ratio /= seconds(second);
  std::ranges::nth_element(ratios, ratios.begin() + ptrdiff_t(ratios.size() / 2));
  return ratios[ratios.size() / 2];
}

struct Shape {
  int64_t n, k;
  std::string text() const { return std::to_string(n) + " x " + std::to_string(k); }
};
const Shape shapes[] = {{2048, 2048}, {1536, 576}, {576, 1536}, {49152, 576}, {3072, 1024}, {11008, 4096}};

class Targets {
 public:
  Targets()
      : team_(make_pool()),
        torch_("kernels_torch.py", {"serve", std::to_string(team_->size())}),
        memory_(numbers(64 << 20)) {
    look_at_peaks();
    tiles_ = isa() == Isa::amx;
    std::printf("%s, %d threads: fp32 %.0f GFLOP/s, bf16 %.0f, int8 %.0f GOP/s, read %.1f GB/s\n",
                std::string(name(isa())).c_str(), team_->size(), peaks_.fp32_gflops, peaks_.bf16_gflops,
                peaks_.int8_gops, peaks_.read_gigabytes);
  }

  void run() {
    for (const Shape& s : shapes) one_row(s);
    for (const Shape& s : shapes) many_rows(s);
    for (const Shape& s : {Shape{1536, 576}, Shape{5632, 2048}}) training(s);
    for (const int64_t groups : {8, 64})
      for (const bool skewed : {false, true}) grouped(groups, skewed);
    attention();
    for (const int64_t keys : {2048, 8192}) decode(keys);
    for (const int64_t dim : {64, 128})
      for (const DType codes : {DType::i8, DType::i4, DType::e4m3}) decode_codes(dim, codes);
    neighbour();
  }

 private:
  // The maximum measured so far, because other load lowers them.
  void look_at_peaks() {
    const Peaks now = measure_peaks(*team_);
    const auto raise = [](double& most, double seen) { most = std::max(most, seen); };
    raise(peaks_.fp32_gflops, now.fp32_gflops), raise(peaks_.bf16_gflops, now.bf16_gflops);
    raise(peaks_.int8_gops, now.int8_gops), raise(peaks_.read_gigabytes, now.read_gigabytes);
  }

  // Seconds to read so many bytes by the fastest loop, from memory that is not in the caches.
  double read_seconds(double bytes) {
    constexpr int64_t piece = 1 << 16;  // floats
    const int64_t pieces = std::max<int64_t>(1, int64_t(bytes / 4) / piece), all = int64_t(memory_.size()) / piece;
    const Loops& isa = loops();
    return bytes / double(pieces * piece * 4) * min_seconds([&] {
             team_->run(pieces, [&](int64_t part) {
               float keep[16];
               isa.peak.read(memory_.data() + (next_read_ + part) % all * piece, piece, keep);
               volatile float kept = keep[0];
               static_cast<void>(kept);
             });
             next_read_ = (next_read_ + pieces) % all;
           });
  }

  void one_row(const Shape& s) {
    const auto x = short_numbers(s.k), w = short_numbers(s.n * s.k);
    std::vector<float> y(size_t(s.n));
    // Products with several copies of a weight in turns, which together exceed the last-level cache.
    const auto cold = [&](const auto& make, AccumulationOrder order) {
      auto copies = std::make_shared<std::vector<decltype(make())>>();
      do copies->push_back(make());
      while (copies->size() < 2 || int64_t(copies->size()) * copies->front().bytes() < 160 << 20);
      return [this, &s, &x, &y, copies, order, next = size_t(0)]() mutable {
        product(*team_, (*copies)[next++ % copies->size()], {x.data(), s.k}, 1, {y.data(), s.n}, nullptr, order);
      };
    };
    const auto row = [&](const std::string& kind, double least, int64_t bytes, const Call& call) {
      const Both t = in_turns(call, [&] { return read_seconds(double(bytes)); });
      show("1 row, " + s.text() + ", " + kind, double(bytes) / t.ours * 1e-9, "GB/s", t.theirs / t.ours, "reading",
           least);
    };
    const auto wants = [&](const char* kind) { return want("1 row, " + s.text() + ", " + kind); };
    if (wants("bf16")) {
      const auto make = [&] { return pack(*team_, {w.data(), s.k}, s.n, s.k, DType::bf16); };
      row("bf16", 0.9, make().bytes(), cold(make, bf16_order()));
    }
    if (!wants("int8") && !wants("nf4")) return;
    const auto quantized = [&](const QuantizedSpec& spec) {
      return [one = std::make_shared<QuantizedWeight>(quantize(*team_, {w.data(), s.k}, s.n, s.k, spec))] {
        QuantizedWeight to(one->n(), one->k(), one->spec());
        std::copy_n(one->data(), one->bytes(), to.data());
        return to;
      };
    };
    const auto bytes = quantized({}), codes = quantized({Codes::table4, 64, nf4_table()});
    const Call by_bytes = cold(bytes, AccumulationOrder::bf16_tile), by_codes = cold(codes, bf16_order());
    row("int8", 0.9, bytes().bytes(), by_bytes);
    row("nf4, groups of 64", 0, codes().bytes(), by_codes);
    show("1 row, " + s.text() + ", nf4 against int8", 1 / min_seconds(by_codes), "1/s",
         middle_ratio(by_bytes, by_codes), "int8", 1.5);
  }

  void many_rows(const Shape& s) {
    constexpr int64_t m = 512;
    const double flops = 2.0 * double(m * s.n * s.k);
    const auto w = numbers(s.n * s.k), x = numbers(m * s.k);
    const auto short_x = short_numbers(m * s.k);
    std::vector<float> y(size_t(m * s.n));
    std::vector<bf16> short_y(size_t(m * s.n));
    const auto row = [&](const std::string& kind, const double& peak, double min_of_peak, double min_of_torch,
                         const Call& call) {
      const std::string what = "512 rows, " + s.text() + ", " + kind;
      if (!want(what)) return;
      look_at_peaks();
      const bool against = torch_ && min_of_torch > 0;
      const Both t = in_turns(
          call,
          [&] {
            return against
                       ? torch_.number("product " + kind + " 512 " + std::to_string(s.n) + " " + std::to_string(s.k))
                       : 1.0;
          },
          against ? 2 : 1);
      show(what, flops / t.ours * 1e-9, "GFLOP/s", flops / t.ours * 1e-9 / peak, "the peak", min_of_peak);
      if (against) show(what, flops / t.theirs * 1e-9, "by torch", t.theirs / t.ours, "torch", min_of_torch);
    };
    {
      const auto packed = pack(*team_, {w.data(), s.k}, s.n, s.k, DType::bf16);
      // Without tiles the target is 60 % of the fp32 FMA peak.
      row("bf16", tiles_ ? peaks_.bf16_gflops : peaks_.fp32_gflops, tiles_ ? 0.5 : 0.6, tiles_ ? 1.15 : 1, [&] {
        product(*team_, packed, {short_x.data(), s.k}, m, {short_y.data(), s.n}, nullptr, bf16_order());
      });
    }
    {
      const auto packed = pack(*team_, {w.data(), s.k}, s.n, s.k, DType::f32);
      row("fp32", peaks_.fp32_gflops, 0, 1, [&] {
        product(*team_, packed, {x.data(), s.k}, m, {y.data(), s.n}, nullptr, AccumulationOrder::fp32_chain);
      });
    }
    {
      const auto packed = quantize(*team_, {w.data(), s.k}, s.n, s.k, {});
      row("int8", peaks_.int8_gops, 0.5, 0, [&] {
        product(*team_, packed, {short_x.data(), s.k}, m, {short_y.data(), s.n}, nullptr, AccumulationOrder::bf16_tile);
      });
    }
  }

  void training(const Shape& s) {
    constexpr int64_t m = 1024;
    const std::string what = "y, dx, dw of 1024 x " + std::to_string(s.k) + " x " + std::to_string(s.n) + ", bf16";
    if (!want(what) || !torch_) return;
    const auto w = short_tensor(s.n * s.k), x = short_tensor(m * s.k), dy = short_tensor(m * s.n),
               y = allocate<bf16>(m * s.n), dx = allocate<bf16>(m * s.k);
    const Buffer<float> dw = allocate<float>(s.n * s.k);
    const auto packed = pack(*team_, {w.get(), s.k}, s.n, s.k, DType::bf16);
    const Both t = in_turns(
        [&] {
          product(*team_, packed, {x.get(), s.k}, m, {y.get(), s.n}, nullptr, bf16_order());
          product_dx(*team_, {dy.get(), s.n}, {w.get(), s.k}, m, s.n, s.k, {dx.get(), s.k}, false);
          product_dw(*team_, {dy.get(), s.n}, {x.get(), s.k}, m, s.n, s.k, {dw.get(), s.k}, false);
        },
        [&] { return torch_.number("training bf16 1024 " + std::to_string(s.n) + " " + std::to_string(s.k)); }, 2);
    show(what, 6.0 * double(m * s.n * s.k) / t.ours * 1e-9, "GFLOP/s", t.theirs / t.ours, "torch", 1.4);
  }

  // 4096 rows on many weights against 4096 rows on one: with packed weights, and as in a training step.
  void grouped(int64_t groups, bool skewed) {
    constexpr int64_t m = 4096, n = 768, k = 2048;
    const std::string what = std::to_string(m) + " rows on " + std::to_string(groups) + " experts of " +
                             Shape{n, k}.text() + (skewed ? ", skewed" : "") + ", bf16";
    if (!want(what)) return;
    // Skewed: expert e has a share of 1 / (e + 1).
    const auto share = [&](int64_t e) { return skewed ? 1.0 / double(e + 1) : 1.0; };
    double all = 0, below = 0;
    for (int64_t e = 0; e < groups; ++e) all += share(e);
    std::vector<int64_t> begin = {0};
    for (int64_t e = 0; e < groups; ++e) below += share(e), begin.push_back(int64_t(double(m) * below / all + 0.5));
    const auto w = short_tensor(groups * n * k), x = short_tensor(m * k), dy = short_tensor(m * n),
               y = allocate<bf16>(m * n), dx = allocate<bf16>(m * k);
    const Buffer<float> dw = allocate<float>(groups * n * k);
    std::vector<PackedWeight> packed;
    std::vector<const PackedWeight*> kept;
    for (int64_t e = 0; e < groups; ++e) packed.push_back(pack(*team_, {w.get() + e * n * k, k}, n, k, DType::bf16));
    for (const PackedWeight& one : packed) kept.push_back(&one);
    const Input from(x.get(), k), back(dy.get(), n), weights(w.get(), k);
    const Output to(y.get(), n), to_x(dx.get(), k), to_w(dw.get(), k);
    GroupWeights stacked{.n = n, .k = k, .rows = weights, .dtype = DType::bf16, .packed = kept};
    // The memory time of the weights: the bytes that a single weight does not move, at the speed of the read loop.
    const double of_weights = double((groups - 1) * n * k);
    const auto row = [&](const std::string& name, double products, double bytes, const Call& many, const Call& one) {
      const Both t = in_turns(many, [&] { return min_seconds(one); });
      show(what + name, 2.0 * products * double(m * n * k) / t.ours * 1e-9, "GFLOP/s", t.theirs / t.ours, "one weight",
           0.8);
      const double moved = read_seconds(double(memory_.size() * 4)) / double(memory_.size() * 4) * bytes;
      std::printf("%-52s %8.0f MB       %6.2f x its time, at the speed of reading\n", "", bytes * 1e-6, moved / t.ours);
    };
    row(
        "", 1, 2 * of_weights, [&] { grouped_product(*team_, begin, stacked, from, to, nullptr, bf16_order()); },
        [&] { product(*team_, packed[0], from, m, to, nullptr, bf16_order()); });
    stacked.packed = {};
    row(
        ", y, dx, dw", 3, 8 * of_weights,
        [&] {
          grouped_product(*team_, begin, stacked, from, to, nullptr, bf16_order());
          grouped_product_dx(*team_, begin, back, weights, n, k, to_x);
          grouped_product_dw(*team_, begin, back, from, n, k, to_w);
        },
        [&] {
          product(*team_, pack(*team_, weights, n, k, DType::bf16), from, m, to, nullptr, bf16_order());
          product_dx(*team_, back, weights, m, n, k, to_x, false);
          product_dw(*team_, back, from, m, n, k, to_w, false);
        });
  }

  void attention() {
    constexpr int64_t heads = 8, tokens = 1024, dim = 64, row = heads * dim;
    const std::string what = "attention 8 x 1024 x 64 causal, bf16";
    if (!want(what) || !torch_) return;
    const auto q = short_numbers(tokens * row), k = short_numbers(tokens * row), v = short_numbers(tokens * row);
    std::vector<bf16> out(q.size()), dq(q.size()), dk(q.size()), dv(q.size());
    std::vector<float> lse(size_t(tokens * heads));
    const int64_t offsets[] = {0, tokens};
    const auto sequences = sequences_of(offsets, 1);
    const AttentionSpec spec{.heads = heads, .kv_heads = heads, .head_dim = dim, .v_dim = dim, .scale = 0.125f};
    const AccumulationOrder order = attention_order(DType::bf16, DType::bf16, DType::bf16);
    const auto in = [](const std::vector<bf16>& from) { return Heads{from.data(), DType::bf16, row, dim}; };
    const auto to = [](std::vector<bf16>& into) { return MutableHeads{into.data(), DType::bf16, row, dim}; };
    const auto forward = [&] { attend(*team_, spec, sequences, in(q), in(k), in(v), to(out), lse.data(), order); };
    const double flops = 2.0 * tokens * tokens * row;
    const Both f = in_turns(forward, [&] { return torch_.number("attention forward"); });
    show(what + ", forward", flops / f.ours * 1e-9, "GFLOP/s", f.theirs / f.ours, "torch", 1.6);
    const Both b = in_turns(
        [&] {
          forward();
          attend_backward(*team_, spec, sequences,
                          {.q = in(q),
                           .k = in(k),
                           .v = in(v),
                           .out = in(out),
                           .dout = in(q),
                           .lse = lse.data(),
                           .dq = to(dq),
                           .dk = to(dk),
                           .dv = to(dv)});
        },
        [&] { return torch_.number("attention both"); });
    show(what + ", both", 3.5 * flops / b.ours * 1e-9, "GFLOP/s", b.theirs / b.ours, "torch", 1.5);
  }

  void decode(int64_t keys) {
    constexpr int64_t heads = 9, kv_heads = 3, dim = 64;
    const std::string what = "decode attention, " + std::to_string(keys) + " keys, bf16";
    if (!want(what)) return;
    const int64_t sets = (96 << 20) / (keys * kv_heads * dim * 4), head_stride = sets * keys * dim;
    const auto k = short_numbers(kv_heads * head_stride), v = short_numbers(kv_heads * head_stride);
    const auto q = short_numbers(heads * dim);
    const AccumulationOrder order = attention_order(DType::bf16, DType::bf16, DType::bf16);
    std::vector<float> out(size_t(heads * dim));
    const AttentionSpec spec{.heads = heads, .kv_heads = kv_heads, .head_dim = dim, .v_dim = dim, .scale = 0.125f};
    const double bytes = 4.0 * double(keys * kv_heads * dim);
    const Both t = in_turns(
        [&, next = int64_t(0)]() mutable {
          const AttentionSequence s{.queries = 1, .past = keys - 1, .keys = keys, .first_key = next++ % sets * keys};
          attend(*team_, spec, {&s, 1}, {q.data(), DType::bf16, heads * dim, dim},
                 {k.data(), DType::bf16, dim, head_stride}, {v.data(), DType::bf16, dim, head_stride},
                 {out.data(), DType::f32, heads * dim, dim}, nullptr, order);
        },
        [&] { return read_seconds(bytes); });
    show(what, bytes / t.ours * 1e-9, "GB/s", t.theirs / t.ours, "reading", 0.85);
  }

  void decode_codes(int64_t dim, DType codes) {
    constexpr int64_t keys = 8192, heads = 9, kv_heads = 3;
    const std::string format = codes == DType::i8 ? "int8" : codes == DType::i4 ? "int8 keys and int4 values" : "e4m3";
    const std::string what = "decode attention, 8192 keys of " + std::to_string(dim) + ", " + format + " against bf16";
    if (!want(what)) return;
    const int64_t sets = (96 << 20) / (keys * kv_heads * dim * 4), tokens = sets * keys;
    const auto k = short_numbers(kv_heads * tokens * dim), v = short_numbers(kv_heads * tokens * dim);
    const auto q = short_numbers(heads * dim);
    const DType key_codes = codes == DType::i4 ? DType::i8 : codes;
    const int64_t key_row = row_bytes(key_codes, dim), row = row_bytes(codes, dim);
    std::vector<uint8_t> coded_k(size_t(kv_heads * tokens * key_row)), coded_v(size_t(kv_heads * tokens * row));
    std::vector<float> k_scales(size_t(kv_heads * tokens)), v_scales(k_scales.size()), out(size_t(heads * dim));
    const auto plain = [&](const std::vector<bf16>& x) { return Heads{x.data(), DType::bf16, dim, tokens * dim}; };
    const auto rows_of = [&](const auto& from, auto& to, DType in, int64_t step, auto& scales) {
      const MutableHeads coded{to.data(), in, step, tokens * step};
      return PagedRows{plain(from), coded, 0, scales.data(), 1, tokens, 0, kv_heads, dim};
    };
    const PagedRows both[] = {rows_of(k, coded_k, key_codes, key_row, k_scales),
                              rows_of(v, coded_v, codes, row, v_scales)};
    std::vector<PagePlace> places(static_cast<size_t>(tokens));
    for (int32_t t = 0; t < tokens; ++t) places[size_t(t)].token = t;
    write_pages(*team_, both, places);
    const Heads from_k{coded_k.data(), key_codes, key_row, tokens * key_row, 0, {k_scales.data(), 1, tokens}};
    const Heads from_v{coded_v.data(), codes, row, tokens * row, 0, {v_scales.data(), 1, tokens}};
    const AttentionSpec spec{.heads = heads, .kv_heads = kv_heads, .head_dim = dim, .v_dim = dim, .scale = 0.125f};
    auto attend_to = [&, next = int64_t(0)](const Heads& keys_of, const Heads& values_of) mutable {
      const AttentionSequence s{.queries = 1, .past = keys - 1, .keys = keys, .first_key = next++ % sets * keys};
      attend(*team_, spec, {&s, 1}, {q.data(), DType::bf16, heads * dim, dim}, keys_of, values_of,
             {out.data(), DType::f32, heads * dim, dim}, nullptr, bf16_order());
    };
    const Both t = in_turns([&] { attend_to(from_k, from_v); },
                            [&] { return min_seconds([&] { attend_to(plain(k), plain(v)); }); }, 5);
    const double gigabytes = 1e-9 * double(keys * kv_heads * (key_row + row + 8));
    show(what, gigabytes / t.ours, "GB/s", t.theirs / t.ours, "bf16", is_whole(codes) ? 1.5 : 1.0);
  }

  // A sequence of small products, alone and with one busy thread per pool thread, which leaves half of the machine.
  void neighbour() {
    const std::string what = "512 x 576 x 1536 beside busy neighbours";
    if (!want(what)) return;
    constexpr int64_t m = 512, n = 1536, k = 576;
    const auto w = numbers(n * k), x = numbers(m * k);
    std::vector<float> y(size_t(m * n));
    const auto packed = pack(*team_, {w.data(), k}, n, k, DType::f32);
    const auto mean_seconds = [&] {
      using Clock = std::chrono::steady_clock;
      const auto begin = Clock::now();
      double all = 0;
      int64_t calls = 0;
      for (; all < 1; ++calls, all = std::chrono::duration<double>(Clock::now() - begin).count())
        product(*team_, packed, {x.data(), k}, m, {y.data(), n}, nullptr, AccumulationOrder::fp32_chain);
      return all / double(calls);
    };
    const double alone = mean_seconds();
    std::atomic<bool> stop{false};
    std::vector<std::thread> busy;
    for (int i = 0; i < team_->size(); ++i)
      busy.emplace_back([&] {
        while (!stop) {
        }
      });
    const double beside = mean_seconds();
    stop = true;
    for (std::thread& t : busy) t.join();
    show(what, 2e-9 * double(m * n * k) / beside, "GFLOP/s", 2 * alone / beside, "its half", 1 / 1.5);
  }

  std::unique_ptr<Executor> team_;
  easydel::bench::Peer torch_;
  std::vector<float> memory_;
  Peaks peaks_;
  bool tiles_ = false;
  int64_t next_read_ = 0;
};

}  // namespace

int main(int count, char** values) {
  wanted.assign(values + 1, values + count);
  Targets().run();
}
