// Advantages of episodes from the rewards of their turns, as easydel/trainers/agentic_moshpit/utils.py has them.
#pragma once

#include "easydel/train/advantages.h"
#include "easydel/train/agentic_moshpit_config.h"

namespace easydel::train {

// The sum of a turn's reward and all later ones, each times gamma for every turn in between.
double discounted_return(const std::vector<double>& turns, double gamma);

// `table` has the rewards of each turn, and as its first column their sum. The other columns are rewards of whole
// episodes, which estimators of turns count for the last one.
Advantages episode_advantages(const RewardTable& table, const AgenticMoshpitKeys& keys, RewardScale scale,
                              RewardAggregation aggregation);

}  // namespace easydel::train
