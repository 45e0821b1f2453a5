// Lines of requests divided among the ranks that hold different rows of a batch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "easydel/collective/team.h"
#include "easydel/elarge/core.h"
#include "easydel/generation/rank_state.h"

namespace easydel::elarge {

// Answers lines on this rank.
using AnswerOwnLines = std::function<void(const std::vector<std::string>& lines, const OnLineAnswer& on_answer)>;

// Every rank gives the same lines and gets all answers: those to its own lines as they come, the others at the end.
// Requests to score are divided over the batch's axes; texts to generate over dp alone, because a generator takes as
// many passes as its longest text, and a forward over weights that are sharded along fsdp is collective. What costs
// nothing is answered everywhere. UserError: that of the first rank that has one. Collective.
void answer_divided(const collective::Team& team, const std::vector<std::string>& lines, const AnswerOwnLines& answer,
                    const OnLineAnswer& on_answer);

// What a scorer tells those of other ranks. Null: there are none.
generation::RankExchange state_exchange(const collective::Team& team);
// Bytes for the beginnings that scores share, of which this share of the free memory may be used; 0: by the free
// memory. Ranks must agree, or their passes would differ. Collective.
int64_t common_cache_bytes(const collective::Team& team, double share);

}  // namespace easydel::elarge
