// The keys of `trainer_type: base`. A face: no torch.
#pragma once

#include <array>

#include "easydel/config/fields.h"

namespace easydel::train {

struct BaseTrainerConfig {
  static constexpr auto doc = "The cross-entropy of the labels; no additional keys.";
  template <class C>
  static constexpr auto fields() {
    return std::array<config::Field, 0>{};
  }
};

}  // namespace easydel::train
