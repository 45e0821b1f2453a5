// `easydel probe rollout`: prompts are continued by the sampler of training, and what it gave is scored by the training
// forward.
#pragma once

#include "easydel/probe/core.h"

namespace easydel::probe {

// A line for each completion: {"ids", "logps", "scored"}, the completions of a prompt after each other.
void rollout_lines(const RolloutRequest& request, const elarge::Output& out);

}  // namespace easydel::probe
