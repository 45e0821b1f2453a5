// The keys of `trainer_type: ray`. A face: no torch.
#pragma once

#include <array>

#include "easydel/config/fields.h"

namespace easydel::train {

struct RayConfig {
  static constexpr auto doc = "As base, over several hosts; no keys of its own.";
  template <class C>
  static constexpr auto fields() {
    return std::array<config::Field, 0>{};
  }
};

}  // namespace easydel::train
