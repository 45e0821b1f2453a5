// What a rank other than the first one does for an engine: it computes the steps that the first rank sends. No torch in
// this header.
#pragma once

#include <cstdint>

#include "easydel/esurge/rank_channel.h"

namespace easydel::models {
class Model;
}

namespace easydel::esurge {

struct FollowerOptions {
  int64_t page_size = 128;
  int64_t part = 0;         // data part of this rank
  bool sends_rows = false;  // it is the first rank of a part other than the first rank's
  int64_t memory = 0;       // bytes that it has for pages
  double step_seconds = 30;
};

// Returns when the first rank says that there are no more steps. UserError: the first rank has ended without a word, or
// a step failed here, which the first rank is told.
void follow_steps(const models::Model& model, const RankConnection& first, const FollowerOptions& options);

}  // namespace easydel::esurge
