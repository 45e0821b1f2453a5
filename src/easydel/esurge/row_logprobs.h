// Log-probabilities of a row of scores, as results have them. No torch.
#pragma once

#include <cstdint>
#include <span>

#include "easydel/esurge/results.h"

namespace easydel::esurge {

// The log-probability of a token, with the bits that losses compute (kernels/log_probability.h).
float row_logprob(std::span<const float> logits, TokenId token);

// The entropy of the row's distribution, in nats.
float row_entropy(std::span<const float> logits);

// The `count` most likely tokens of a row of logits and `chosen`, most likely first, equal ones by their ids.
TokenLogprobs row_logprobs(std::span<const float> logits, int64_t count, TokenId chosen);

}  // namespace easydel::esurge
