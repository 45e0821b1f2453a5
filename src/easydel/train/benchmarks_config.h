// Benchmark tasks on the model while it is trained: the interface that the run implements, since the trainer knows no
// tasks. No torch.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace easydel::train {

// "copa/acc" and its value.
using BenchmarkMetrics = std::vector<std::pair<std::string, double>>;

class Benchmarks {
 public:
  virtual ~Benchmarks() = default;
  // Called with the number of answered requests, and of all that were asked for so far.
  using OnWork = std::function<void(int64_t done, int64_t total)>;
  // The metrics of all benchmarks with the model's present weights, which it does not change. Nothing: `stop` was set
  // before all were there. UserError: a benchmark failed. Collective, with the same result on every rank.
  virtual std::optional<BenchmarkMetrics> run(const std::atomic<bool>& stop, const OnWork& on_work) = 0;
};

}  // namespace easydel::train
