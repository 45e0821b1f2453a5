// Reports of a running training: to a progress display, to metrics.jsonl, to the loss curve. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/train/benchmarks_config.h"

namespace easydel::train {

struct StepReport {
  int64_t step = 0, steps = 0;  // updates done; updates of the run
  double epoch = 0;             // how far, in epochs
  double loss = 0, learning_rate = 0;
  double mean_loss = 0;    // over the last steps, for people
  int64_t mean_steps = 1;  // how many those are
  std::optional<double> gradient_norm;
  int64_t tokens = 0;                                     // in this step
  int64_t tokens_seen = 0;                                // since the run began
  double tokens_per_second = 0, examples_per_second = 0;  // since the last report
  double teraflops = 0;
  std::optional<double> share_of_peak;
  double seconds = 0, seconds_left = 0;
  std::vector<std::pair<std::string, double>> metrics;
  bool logged = false;  // a step that belongs in the log (log_steps)
};

struct EvaluationReport {
  int64_t step = 0;
  double loss = 0;
  int64_t tokens = 0, examples = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, double>> metrics;
  // Of the sets that have names, where there are several: <name>/loss and <name>/<metric>.
  std::vector<std::pair<std::string, double>> of_sets = {};
};

struct BenchmarkReport {
  int64_t step = 0;
  BenchmarkMetrics metrics;
  double seconds = 0;
};

// How far something is that takes long before there is a report of it.
struct Work {
  enum class Kind : uint8_t { reading, step, evaluation, benchmarks };
  Kind kind = Kind::step;
  // Rows that were tokenized; micro-batches; batches; requests. total 0: unknown. Rows: the same numbers at the end.
  int64_t done = 0, total = 0;
};

// Who watches a run. Called by the training thread.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void started(int64_t /*step*/, int64_t /*steps*/) {}
  virtual void worked(const Work&) {}
  virtual void stepped(const StepReport&) {}
  virtual void evaluated(const EvaluationReport&) {}
  virtual void benchmarked(const BenchmarkReport&) {}
  virtual void finished() {}
};

Value as_record(const StepReport& report, const std::string& prefix);
Value as_record(const EvaluationReport& report, const std::string& prefix);
Value as_record(const BenchmarkReport& report, const std::string& prefix);

// A file in the run's folder, such as metrics.jsonl: one JSON object a line, each with its step. Going on from a step
// drops the lines after it.
class Records {
 public:
  Records(std::filesystem::path file, int64_t from_step);
  ~Records();
  // Whether a line of the step that the run goes on from was kept which has a key that begins so.
  bool has(std::string_view key) const;
  // A line that cannot be written is warned of, and lost: the run is worth more.
  void add(const Value& record);
  void sync();  // to the disk, with the same warning

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The curve of the losses in metrics.jsonl (training and evaluation) as an SVG picture.
std::string loss_curve(const std::filesystem::path& metrics, const std::string& title, const std::string& prefix);
// The same of every number that is there but those of benchmarks, one below the other in two columns.
std::string all_curves(const std::filesystem::path& metrics, const std::string& title, const std::string& prefix);
// The same of the benchmarks' metrics; empty: there are none.
std::string benchmark_curves(const std::filesystem::path& metrics, const std::string& title, const std::string& prefix);

}  // namespace easydel::train
