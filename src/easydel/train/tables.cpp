// The tables of what every method has. The methods' own: method_tables.cpp.
#include "easydel/config/tables.h"
#include "easydel/train/environment_config.h"
#include "easydel/train/loss_config.h"
#include "easydel/train/method_configs.h"
#include "easydel/train/rewards_config.h"
#include "easydel/train/trainer_python_config.h"

namespace easydel::config {

template const Section& section_of<train::SchedulerArguments>();
template const Section& section_of<train::LearningRate>();
template const Section& section_of<train::TrainerConfig>();
template const Section& section_of<train::TrainerPythonConfig>();
template const Section& section_of<train::TrainerSection>();
template const Section& section_of<train::LossConfig>();
template const Section& section_of<train::RewardEntry>();
template const Section& section_of<train::EnvironmentConfig>();

}  // namespace easydel::config
