// The names under which a run's models are served.
#pragma once

#include <string>

#include "easydel/elarge/elarge.h"

namespace easydel::elarge {

// esurge.esurge_name; otherwise a folder's last name, or the whole name of a model on the Hub.
std::string served_name(const Config& config);

}  // namespace easydel::elarge
