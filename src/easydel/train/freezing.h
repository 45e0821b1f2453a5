// Which of a loaded model's parameters a run leaves as they are.
#pragma once

#include "easydel/models/model.h"
#include "easydel/train/trainer_config.h"

namespace easydel::train {

// Freezes what trainer.frozen_parameters and frozen_layers name. UserError if they name nothing, a layer that is not
// there, or everything.
void freeze(models::Model& model, const TrainerConfig& config);
// The same UserErrors for the parameters of a model that is not loaded yet.
void check_freezing(const std::vector<models::ParameterName>& parameters, const TrainerConfig& config);

}  // namespace easydel::train
