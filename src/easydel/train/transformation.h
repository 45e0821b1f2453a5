// How the parameters are updated in each step: the optimizer, the learning rate, the limit of the gradient's norm.
#pragma once

#include <cstdint>
#include <optional>

#include "easydel/train/optimizer.h"
#include "easydel/train/schedule.h"
#include "easydel/train/trainer_config.h"

namespace easydel::train {

struct Transformation {
  OptimizerOptions optimizer;
  Schedule schedule;
  std::optional<double> clip_grad;  // largest global norm of the gradient
};

// What the trainer's keys say, for a run of `steps` steps.
Transformation transformation_of(const TrainerConfig& config, int64_t steps);

}  // namespace easydel::train
