// The keys of `trainer_type: base`. A face: no torch.
#pragma once

#include <tuple>

#include "easydel/config/fields.h"

namespace easydel::train {

struct BaseTrainerConfig {
  static constexpr auto doc = "The loss of the labels; no keys of its own.";
  static constexpr auto fields() { return std::tuple{}; }
};

}  // namespace easydel::train
