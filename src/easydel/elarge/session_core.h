// A configuration at work, on torch: the body behind elarge::Session.
#pragma once

#include <memory>

#include "easydel/elarge/core.h"

namespace easydel::elarge {

// As Core::check.
void check_session(const Config& config, int64_t ranks, bool trains);
std::unique_ptr<Session> open_session(const Config& config, bool trains);

}  // namespace easydel::elarge
