// `easydel probe engine`: requests as lines, answered by the engine on a schedule that the lines give.
#pragma once

#include "easydel/probe/core.h"

namespace easydel::probe {

// Gives one line for each line of the request, in order, and counters on standard error.
void engine_lines(const EngineRequest& request, const elarge::Output& out);

}  // namespace easydel::probe
