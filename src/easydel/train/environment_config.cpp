#include "easydel/train/environment_config.h"

#include "easydel/base/error.h"

namespace easydel::train {

void EnvironmentConfig::settle(config::Keys& keys) {
  if (type == EnvironmentType::program && command.empty())
    keys.refuse("command", "is missing; type program needs it", "for example: [python3, environment.py]");
  if (type == EnvironmentType::plugin && !function)
    keys.refuse("function", "is missing; type plugin needs it", "name an environment of a plug-in");
}

}  // namespace easydel::train
