// The requests of the plain loop, answered by the engine.
#pragma once

#include <vector>

#include "easydel/elarge/core.h"
#include "easydel/esurge/engine.h"
#include "easydel/generation/generator.h"

namespace easydel::elarge {

// Results as Session::generate. Logs tokens per second and how much of the prompts was found in the prefix cache.
std::vector<Generated> generate_by_engine(esurge::Engine& engine, const std::vector<generation::Request>& requests,
                                          const GenerateRequest& request);

}  // namespace easydel::elarge
