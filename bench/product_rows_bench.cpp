// Products of few rows and many, by bytes and in bf16, as part of the peak of their instruction: product_rows_bench
// [THREADS]. The shapes are SmolLM2-135M's; weights of "cold" are read from memory, those of others lie in the caches.
// The last lines: queries, keys and values, and gate and up, one after another over all at once.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "easydel/base/clock.h"
#include "easydel/kernels/joint_products.h"
#include "easydel/kernels/peak.h"

namespace {

using namespace easydel;
using namespace easydel::kernels;

constexpr int64_t row_counts[] = {1, 2, 4, 8, 16, 32, 64, 128, 512};

std::vector<float> numbers(int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  uint32_t state = 12345;
  for (float& x : out) state = state * 1664525 + 1013904223, x = float(state >> 8) * 0x1p-23f - 1;
  return out;
}

// The least seconds of a call.
double seconds_of(const std::function<void()>& call) {
  double least = 1e9, all = 0;
  for (int i = 0; i < 5 || all < 0.05; ++i) {
    const auto begin = Clock::now();
    call();
    const double seconds = seconds_since(begin);
    least = std::min(least, seconds), all += seconds;
  }
  return least;
}

template <class W>
struct Weights {
  std::vector<std::unique_ptr<W>> all;
  int64_t k = 0, out = 0;

  void add(W weight) { all.push_back(std::make_unique<W>(std::move(weight))); }
};

class Bench {
 public:
  explicit Bench(int threads) : team_(threads > 0 ? make_pool(threads) : make_pool()), peaks_(measure_peaks(*team_)) {
    std::printf("%d threads: bf16 %.0f GFLOP/s, int8 %.0f GOP/s, read %.1f GB/s; figures are parts of these peaks\n",
                team_->size(), peaks_.bf16_gflops, peaks_.int8_gops, peaks_.read_gigabytes);
    std::printf("%-28s", "rows");
    for (const int64_t rows : row_counts) std::printf(" %5lld", static_cast<long long>(rows));
    std::printf("\n");
  }

  void shape(int64_t n, int64_t k, bool cold = false) {
    const std::vector<float> values = numbers(n * k);
    const int64_t copies = cold ? std::max<int64_t>(2, (160 << 20) / (n * k)) : 1;
    const Weights<QuantizedWeight> bytes = bytes_of(values, n, k, copies);
    const Weights<PackedWeight> packed = packed_of(values, n, k, copies);
    line("int8", n, k, cold, peaks_.int8_gops, bytes, AccumulationOrder::fp32_chain);
    line("bf16", n, k, cold, peaks_.bf16_gflops, packed, bf16_order());
  }

  // Seconds of one product after another over those of all at once.
  void joint(const char* name, const std::vector<int64_t>& outs, int64_t k) {
    const auto both = [&]<class W>(const char* kind, const W&, AccumulationOrder order) {
      std::vector<std::unique_ptr<W>> weights;
      for (const int64_t n : outs) {
        const std::vector<float> values = numbers(n * k);
        if constexpr (std::is_same_v<W, PackedWeight>)
          weights.push_back(std::make_unique<W>(pack(*team_, {values.data(), k}, n, k, DType::bf16)));
        else
          weights.push_back(std::make_unique<W>(quantize(*team_, {values.data(), k}, n, k, {})));
      }
      std::printf("%-28s", (std::string(name) + ", " + kind + ", ratio").c_str());
      for (const int64_t m : row_counts) {
        const std::vector<bf16> x = rows_of(m, k);
        std::vector<std::vector<bf16>> y;
        std::vector<JointPart<W>> parts;
        for (const auto& w : weights) y.emplace_back(size_t(m * w->n()));
        for (size_t i = 0; i < weights.size(); ++i) parts.push_back({weights[i].get(), {y[i].data(), weights[i]->n()}});
        const double apart = seconds_of([&] {
          for (const JointPart<W>& part : parts)
            product(*team_, *part.weight, {x.data(), k}, m, part.y, nullptr, order);
        });
        std::printf(" %5.2f", apart / seconds_of([&] { products(*team_, parts, {x.data(), k}, m, order); }));
        std::fflush(stdout);
      }
      std::printf("\n");
    };
    both("int8", QuantizedWeight(0, 64, {}), AccumulationOrder::fp32_chain);
    both("bf16", PackedWeight(), bf16_order());
  }

 private:
  static std::vector<bf16> rows_of(int64_t m, int64_t k) {
    std::vector<bf16> out;
    for (const float x : numbers(m * k)) out.push_back(narrow(x));
    return out;
  }
  Weights<QuantizedWeight> bytes_of(const std::vector<float>& values, int64_t n, int64_t k, int64_t copies) {
    Weights<QuantizedWeight> out{{}, k, n};
    for (int64_t i = 0; i < copies; ++i) out.add(quantize(*team_, {values.data(), k}, n, k, {}));
    return out;
  }
  Weights<PackedWeight> packed_of(const std::vector<float>& values, int64_t n, int64_t k, int64_t copies) {
    Weights<PackedWeight> out{{}, k, n};
    for (int64_t i = 0; i < copies; ++i) out.add(pack(*team_, {values.data(), k}, n, k, DType::bf16));
    return out;
  }

  template <class W>
  void line(const char* kind, int64_t n, int64_t k, bool cold, double peak, const Weights<W>& weights,
            AccumulationOrder order) {
    std::printf("%-28s",
                (std::to_string(n) + " x " + std::to_string(k) + ", " + kind + (cold ? ", cold" : "")).c_str());
    size_t next = 0;
    for (const int64_t m : row_counts) {
      const std::vector<bf16> x = rows_of(m, k);
      std::vector<bf16> y(size_t(m * n));
      const double seconds = seconds_of([&] {
        product(*team_, *weights.all[next++ % weights.all.size()], {x.data(), k}, m, {y.data(), n}, nullptr, order);
      });
      std::printf(" %5.2f", 2e-9 * double(m * n * k) / seconds / peak);
      std::fflush(stdout);
    }
    std::printf("\n");
  }

  std::unique_ptr<Executor> team_;
  Peaks peaks_;
};

}  // namespace

int main(int count, char** values) {
  Bench bench(count > 1 ? std::atoi(values[1]) : 0);
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{576, 576}, {192, 576}, {1536, 576}, {576, 1536}})
    bench.shape(n, k);
  bench.shape(1536, 576, true);
  bench.shape(49152, 576, true);
  bench.joint("q, k, v", {576, 192, 192}, 576);
  bench.joint("gate, up", {1536, 1536}, 576);
}
