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
    std::vector<train::CompletionLength> lengths;
    train::RewardTable rewards;
  };
  std::vector<One> all;
};
struct JudgedGeneration {
  std::string line;                    // of JSON: its step and the advantages of its completions
  std::vector<train::Metric> metrics;  // of rewards and lengths, as TRL's trainers log them with the step
};
// By the rules of the section's method. `model`: as it is before the generation's step. `reference`: null where the
// method has none.
JudgedGeneration judged(const RecordedGenerations::One& generation, const train::TrainerSection& section,
                        const models::Model& model, const models::Model* reference);

}  // namespace easydel::probe
