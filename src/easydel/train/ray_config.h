// The keys of `trainer_type: ray`. A face: no torch.
#pragma once

#include <array>

#include "easydel/config/fields.h"

namespace easydel::train {

struct RayConfig {
  static constexpr auto doc = "Like base, over several hosts; no additional keys.";
  template <class C>
  static constexpr auto fields() {
    return std::array<config::Field, 0>{};
  }
};

}  // namespace easydel::train
