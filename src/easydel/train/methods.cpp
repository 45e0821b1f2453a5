// The training methods, in alphabetical order.
#include <array>

#include "easydel/train/method.h"

namespace easydel::train {

MethodEntry dpo();
MethodEntry sft();

std::span<const MethodEntry> methods() {
  static const std::array all{dpo(), sft()};
  return all;
}

}  // namespace easydel::train
