// `--set key=value`, and the configuration of commands that have no file.
#pragma once

#include <string>
#include <vector>

#include "easydel/elarge/elarge.h"

namespace easydel::cli {

std::vector<elarge::Override> overrides_of(const std::vector<std::string>& set);

// `document` with `set` over it, to be computed with and not to train: UserError for what is wrong or not built.
elarge::Config configuration(Value document, const std::vector<std::string>& set);

}  // namespace easydel::cli
