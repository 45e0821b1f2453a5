// Whether the rewards of a run that samples are there, before anything is computed. No torch.
#pragma once

#include "easydel/config/fields.h"
#include "easydel/elarge/elarge.h"

namespace easydel::elarge {

// A missing reward, a program that cannot be started, a folder without a model. Functions of plug-ins are checked where
// plug-ins are loaded (check_session).
void check_rewards(const Config& config, config::Problems& problems);

}  // namespace easydel::elarge
