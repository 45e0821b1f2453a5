// Which completions of a group gfpo learns from.
#pragma once

#include <cstddef>
#include <vector>

#include "easydel/train/gfpo_config.h"

namespace easydel::train {

// Of each completion of a group: its reward per token, divided by the largest absolute one, and how much shorter it is
// than the longest, by the keys' weights.
std::vector<double> filter_scores(const std::vector<double>& rewards, const std::vector<double>& lengths,
                                  const GfpoKeys& keys);
// The places of the `most` highest scores, in their order; of equal scores the first.
std::vector<size_t> best_of(const std::vector<double>& scores, size_t most);

}  // namespace easydel::train
