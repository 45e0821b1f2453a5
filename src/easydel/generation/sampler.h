// Choosing one token from a row of scores: the likeliest, or a draw that depends on seed, request and position alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "easydel/generation/processors.h"

namespace easydel::generation {

// Of equal scores the smallest id.
TokenId likeliest(std::span<const float> scores);

// A number in [0, 1): a function of the seed, the index of the result within its request, and the position (number of
// tokens before it) alone.
double draw(uint64_t seed, uint64_t choice, size_t position);

// A token, by the probabilities of these scores and a number in [0, 1).
TokenId pick(std::span<const float> scores, double number);

// `count` different indices, drawn without replacement by the probabilities of these scores (the greatest of scores
// with Gumbel noise, arXiv:1903.06059). Impossible tokens (never_drawn) are taken only if nothing else is left.
std::vector<size_t> pick_several(std::span<const float> scores, size_t count, uint64_t seed, size_t position);

}  // namespace easydel::generation
