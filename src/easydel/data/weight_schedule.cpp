#include "easydel/data/weight_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "easydel/base/error.h"

namespace easydel::data {
namespace {

std::vector<double> shares_of(const WeightPoint& point) {
  const double sum = std::accumulate(point.weights.begin(), point.weights.end(), 0.0);
  std::vector<double> out;
  for (const double weight : point.weights) out.push_back(weight / sum);
  return out;
}

}  // namespace

std::vector<double> WeightSchedule::shares_at(int64_t step) const {
  check(!points.empty(), "weights of a schedule without points");
  const auto next = std::ranges::upper_bound(points, step, {}, &WeightPoint::step);
  if (next == points.begin()) return shares_of(points.front());
  const WeightPoint& last = *std::prev(next);
  std::vector<double> out = shares_of(last);
  if (next == points.end() || interpolation == WeightInterpolation::step) return out;
  double part = double(step - last.step) / double(next->step - last.step);
  if (interpolation == WeightInterpolation::cosine) part = (1 - std::cos(std::numbers::pi * part)) / 2;
  const std::vector<double> following = shares_of(*next);
  for (size_t s = 0; s < out.size(); ++s) out[s] += part * (following[s] - out[s]);
  return out;
}

}  // namespace easydel::data
