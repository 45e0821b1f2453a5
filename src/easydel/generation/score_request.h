// What is asked of a scorer, and what it gives. Plain values without torch.
#pragma once

#include <vector>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::generation {

struct ScoreRequest {
  // At least one token each. Of a request that is too long, the left end of the context is left out.
  std::vector<text::TokenId> context, continuation;
};

struct TokenScores {
  double logprob = 0;       // sum over the continuation, in double
  bool is_greedy = true;    // each token of the continuation is the most likely one (the first of equal ones)
  std::vector<float> each;  // log-probability of each token of the continuation
};

}  // namespace easydel::generation
