// mixture.mixture_weight_schedule. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/data/weight_schedule.h"

namespace easydel::data {

constexpr auto choices(WeightInterpolation) {
  using enum WeightInterpolation;
  return std::array{config::Choice{step, "step"}, config::Choice{linear, "linear"}, config::Choice{cosine, "cosine"}};
}

struct WeightPointConfig {
  int64_t step = 0;
  std::map<std::string, double> weights;

  static constexpr auto doc = "Shares of the sources from a step on.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::step>("Step of the run, from 0.", at_least(0)),
        field<&C::weights>("Share of each source, by its name.", at_least(0)),
    };
  }
};

struct WeightScheduleConfig {
  WeightInterpolation interpolation = WeightInterpolation::step;
  std::vector<WeightPointConfig> points;

  static constexpr auto doc = "Shares of the sources that change while the run goes on.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::interpolation>("Weights between two points: step keeps those of the earlier one; linear and cosine "
                                 "go from one to the other."),
        field<&C::points>("Steps, which rise, with their weights. The first weights also hold before their step, the "
                          "last ones to the end of the run."),
    };
  }
};

}  // namespace easydel::data
