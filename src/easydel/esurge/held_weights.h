// A hold on which weights answer requests. No torch.
#pragma once

#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace easydel::esurge {

// While it lives, all requests that are added are answered by the same weights. To be held for a moment: new weights
// wait for it.
struct HeldWeights {
  std::shared_lock<std::shared_mutex> lock = {};
  int64_t number = 0;  // of those weights: 0, and one more with each Engine::update_model_weights
};

}  // namespace easydel::esurge
