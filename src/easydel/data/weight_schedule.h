// Weights of the sources of a block mixture that change while a run goes on.
#pragma once

#include <cstdint>
#include <vector>

namespace easydel::data {

enum class WeightInterpolation : uint8_t {
  step,    // the weights of the last point that was reached
  linear,  // on the line between two points
  cosine   // between two points by (1 - cos(pi * part)) / 2, as EasyDeL's pipeline
};

struct WeightPoint {
  int64_t step = 0;             // of the run, from 0
  std::vector<double> weights;  // one for each source, from 0; their sum is above 0
};

struct WeightSchedule {
  WeightInterpolation interpolation = WeightInterpolation::step;
  std::vector<WeightPoint> points;  // by rising steps; empty: there is no schedule
  int64_t examples_per_update = 1;  // decides the step at which a block begins
  int64_t examples_in_run = 0;      // length of the one epoch that such a mixture has
  // Examples are packed rows of a block's documents. So the step at which a block begins is known once those before it
  // are packed.
  bool is_packed = false;

  // The sources' shares of the step, which add up to 1. Before the first point they are those of the first one, after
  // the last point those of the last one.
  std::vector<double> shares_at(int64_t step) const;
};

}  // namespace easydel::data
