// `--set key=value`, and the configuration of commands that have no file.
#pragma once

#include <string>
#include <vector>

#include "easydel/elarge/elarge.h"

namespace easydel::elarge {

std::vector<Override> overrides_of(const std::vector<std::string>& set);

// The configuration of `document` with `set` applied, for commands that do not train. UserError if it is wrong or not
// built.
Config configuration(Value document, const std::vector<std::string>& set);

}  // namespace easydel::elarge
