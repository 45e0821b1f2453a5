// What ranks that compute different things with one sharded model tell each other: their passes gather weights
// together, so all must make as many.
#pragma once

#include <cstdint>
#include <functional>

namespace easydel::generation {

// Told before each pass and after the last one, in the order in which one outdoes another.
enum class RankState : uint8_t { done, works, ended };  // ended: it is stopped, or has failed

// Tells a rank's state to the others; returns the one of all that outdoes the rest. Collective.
using RankExchange = std::function<RankState(RankState)>;

}  // namespace easydel::generation
