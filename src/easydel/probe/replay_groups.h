// What recorded runs of TRL's GRPO, GMPO and RLOO trainers sampled, and the advantages of that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "easydel/data/example.h"
#include "easydel/train/advantages.h"
#include "easydel/train/method_configs.h"

namespace easydel::probe {

// What was sampled at some steps, and its rewards.
struct RecordedGenerations {
  struct One {
    int64_t step = 0;  // from 1: the step that it is sampled before
    std::vector<data::Example> completions;
    train::RewardTable rewards;
  };
  std::vector<One> all;
};
// The advantages of a generation as a line of JSON, by the rules of the section's method. `model`: as it is before the
// generation's step. `reference`: null where the method has none.
std::string advantages_line(const RecordedGenerations::One& generation, const train::TrainerSection& section,
                            const models::Model& model, const models::Model* reference);

}  // namespace easydel::probe
