#include "easydel/train/weight_histograms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "easydel/base/regular_expression.h"
#include "easydel/nn/shards.h"
#include "easydel/tensor/executor.h"
#include "easydel/train/trainer.h"

namespace easydel::train {

namespace {

constexpr int intervals = 64;
// Values that one task reads. It is fixed, so that sums do not depend on the number of threads.
constexpr size_t task_values = size_t{1} << 16;

using Values = std::span<const float>;

// Runs work(values, part) for every task's part of all values.
template <class Part, class Work>
std::vector<Part> in_parts(Values all, Work work) {
  std::vector<Part> out((all.size() + task_values - 1) / task_values);
  tensor::executor().run(int64_t(out.size()), [&](int64_t task) {
    const size_t begin = size_t(task) * task_values;
    work(all.subspan(begin, std::min(task_values, all.size() - begin)), out[size_t(task)]);
  });
  return out;
}

struct Extent {
  int64_t values = 0;  // finite ones, as in all members
  float min = INFINITY, max = -INFINITY;
  double sum = 0, sum_of_squares = 0;

  void add(float value) {
    const bool finite = std::abs(value) < INFINITY;
    const float counted = finite ? value : 0;
    values += finite;
    min = finite && value < min ? value : min, max = finite && value > max ? value : max;
    sum += counted, sum_of_squares += double(counted) * counted;
  }
  void add(const Extent& other) {
    values += other.values;
    min = std::min(min, other.min), max = std::max(max, other.max);
    sum += other.sum, sum_of_squares += other.sum_of_squares;
  }
};

void measure(Values values, Extent& out) {
  std::array<Extent, 8> chains;  // which do not wait for each other
  size_t i = 0;
  for (; i + chains.size() <= values.size(); i += chains.size())
    for (size_t lane = 0; lane < chains.size(); ++lane) chains[lane].add(values[i + lane]);
  for (; i < values.size(); ++i) chains[0].add(values[i]);
  for (const Extent& chain : chains) out.add(chain);
}

using Counts = std::array<int64_t, intervals>;

}  // namespace

Histogram histogram_of(const Tensor& values) {
  const Tensor flat = values.contiguous();
  const Values all(flat.const_data_ptr<float>(), size_t(flat.numel()));
  Extent extent;
  for (const Extent& part : in_parts<Extent>(all, measure)) extent.add(part);
  Histogram out;
  if (extent.values == 0) return out;
  out.values = extent.values, out.sum = extent.sum, out.sum_of_squares = extent.sum_of_squares;
  out.min = extent.min, out.max = extent.max;
  const double width = (out.max - out.min) / intervals;
  for (int i = 1; i < intervals; ++i) out.limits.push_back(out.min + i * width);
  out.limits.push_back(out.max);
  const double per_value = width > 0 ? 1 / width : 0;
  const auto count = [&](Values some, Counts& counts) {
    for (const float value : some) {
      if (!std::isfinite(value)) continue;
      // Rounding may put a value that lies on a limit one interval too high or low.
      auto i = std::clamp(int((value - out.min) * per_value), 0, intervals - 1);
      while (i > 0 && value <= out.limits[size_t(i - 1)]) --i;
      while (i < intervals - 1 && value > out.limits[size_t(i)]) ++i;
      ++counts[size_t(i)];
    }
  };
  out.counts.assign(intervals, 0);
  for (const Counts& part : in_parts<Counts>(all, count))
    std::ranges::transform(part, out.counts, out.counts.begin(), std::plus());
  return out;
}

void Trainer::add_weight_histograms(int64_t step, EventFile* events) const {
  if (!config().report_metrics || !config().tensorboard || !is_due(step, config().weight_distribution_log_steps))
    return;
  const RegularExpression pattern(config().weight_distribution_pattern);
  const std::string prefix = config().trainer_prefix ? *config().trainer_prefix + "/" : "";
  for (const nn::Entry& entry : parts_.model->parameters().entries()) {
    if (!entry.trainable || !pattern.found_in(entry.path)) continue;
    const Tensor whole = nn::whole_of(entry, entry.shard.detach());
    if (events)
      events->add_histogram(step, prefix + "weights/" + entry.path, histogram_of(whole.to(at::kCPU, at::kFloat)));
  }
}

}  // namespace easydel::train
