// Code shared by the kinds of recorded eLargeModel cases; each kind is in a vectors_elarge*.cpp.
#pragma once

#include "easydel/base/document.h"

namespace easydel::probe {

// A recorded configuration in which upstream's defaults for keys that `given` does not say are replaced by those that
// `ours`, the document of our own builder, shows.
Value with_our_defaults(Value recorded, const Value& given, const Value& ours);

// The value of a key; null if it is missing.
Value member(const Value& map, std::string_view key);

}  // namespace easydel::probe
