// The keys of `trainer_type: ray`, which are those of base. A face: no torch.
#pragma once

#include "easydel/train/base_config.h"

namespace easydel::train {

using RayConfig = BaseTrainerConfig;

}  // namespace easydel::train
