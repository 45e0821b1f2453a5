// The reward that a model with a class head of one label gives.
#pragma once

#include <memory>
#include <string>

#include "easydel/train/method.h"
#include "easydel/train/rewards.h"

namespace easydel::train {

// The score of prompt and completion in the model's own tokens: through its chat template if the prompt is a
// conversation. UserError if the model is no such model, or without a tokenizer. `where` names it in errors.
std::unique_ptr<CompletionReward> model_reward(const SideModel& model, const std::string& where);
// The same of a folder.
std::unique_ptr<CompletionReward> folder_reward(const std::string& folder, const std::string& where);

}  // namespace easydel::train
