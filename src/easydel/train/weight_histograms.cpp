#include "easydel/train/weight_histograms.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "easydel/base/regular_expression.h"
#include "easydel/nn/shards.h"
#include "easydel/train/trainer.h"

namespace easydel::train {

Histogram histogram_of(const Tensor& values) {
  constexpr int intervals = 64;
  const Tensor flat = values.contiguous();
  const std::span<const float> all(flat.const_data_ptr<float>(), size_t(flat.numel()));
  Histogram out;
  float least = INFINITY, most = -INFINITY;
  for (const float value : all) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value), most = std::max(most, value);
    out.sum += value, out.sum_of_squares += double(value) * value;
    ++out.values;
  }
  if (out.values == 0) return out;
  out.min = least, out.max = most;
  const double width = (out.max - out.min) / intervals;
  for (int i = 1; i < intervals; ++i) out.limits.push_back(out.min + i * width);
  out.limits.push_back(out.max);
  out.counts.assign(intervals, 0);
  const double per_value = width > 0 ? 1 / width : 0;
  for (const float value : all) {
    if (!std::isfinite(value)) continue;
    // Rounding may put a value that lies on a limit one interval too high or low.
    auto i = std::clamp(int((value - out.min) * per_value), 0, intervals - 1);
    while (i > 0 && value <= out.limits[size_t(i - 1)]) --i;
    while (i < intervals - 1 && value > out.limits[size_t(i)]) ++i;
    ++out.counts[size_t(i)];
  }
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
