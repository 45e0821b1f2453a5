// A configuration at work, on torch: the body behind elarge::Session.
#pragma once

#include <memory>

#include "easydel/elarge/core.h"

namespace easydel::elarge {

std::unique_ptr<Session> open_session(const Config& config, bool trains);

}  // namespace easydel::elarge
