// Settings for pushing a model to the Hugging Face Hub, from the configuration. hub/push.h pushes it.
#pragma once

#include <string>

#include "easydel/elarge/action_config.h"
#include "easydel/hub/push.h"
#include "easydel/train/trainer_config.h"

namespace easydel::elarge {

hub::PushOptions push_options(const PushConfig& action);
// Of trainer.push_to_hub; that it names a repository was checked before.
hub::PushOptions push_options(const train::TrainerConfig& trainer);

std::string pushed_text(const std::string& repository, const hub::Pushed& pushed);  // "sent 3 files to ..."

}  // namespace easydel::elarge
