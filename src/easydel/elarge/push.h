// What the configuration says of sending a model to the hub. The sending is hub/push.h's business.
#pragma once

#include <string>

#include "easydel/elarge/action_config.h"
#include "easydel/hub/push.h"
#include "easydel/train/trainer_config.h"

namespace easydel::elarge {

hub::PushOptions push_options(const PushConfig& action);
// Of trainer.push_to_hub, which names a repository: that is checked before.
hub::PushOptions push_options(const train::TrainerConfig& trainer);

std::string pushed_text(const std::string& repository, const hub::Pushed& pushed);  // "sent 3 files to ..."

}  // namespace easydel::elarge
