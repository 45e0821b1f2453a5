// The requests of the plain loop, answered by the engine.
#pragma once

#include <vector>

#include "easydel/base/document.h"
#include "easydel/elarge/core.h"
#include "easydel/esurge/engine.h"
#include "easydel/generation/generator.h"

namespace easydel::elarge {

// Results as Session::generate. Logs tokens per second and how much of the prompts was found in the prefix cache.
std::vector<Generated> generate_by_engine(esurge::Engine& engine, const std::vector<generation::Request>& requests,
                                          const GenerateRequest& request);

// As a document, in which one rank sends them to the others.
Value document_of(const std::vector<Generated>& all);
std::vector<Generated> generated_of(const Value& document);

}  // namespace easydel::elarge
