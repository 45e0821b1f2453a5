// The keys of `trainer_type: ray`. A face: no torch.
#pragma once

#include <tuple>

#include "easydel/config/fields.h"

namespace easydel::train {

struct RayConfig {
  static constexpr auto doc = "As base, over several hosts; no keys of its own.";
  static constexpr auto fields() { return std::tuple{}; }
};

}  // namespace easydel::train
