// Choosing one token from a row of scores: the likeliest, or a draw that depends on seed, request and position alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "easydel/generation/processors.h"

namespace easydel::generation {

// Of equal scores the smallest id.
TokenId likeliest(std::span<const float> scores);

// A number in [0, 1), always the same for one seed, request and position (tokens before it). What is drawn beside it
// makes no difference.
double draw(uint64_t seed, uint64_t request, size_t position);

// A token, by the probabilities of these scores and a number in [0, 1).
TokenId pick(std::span<const float> scores, double number);

// `count` different indices, drawn one after the other by the probabilities of these scores (the greatest of scores
// with Gumbel noise, arXiv:1903.06059); what cannot come (kNever) only where nothing else is left.
std::vector<size_t> pick_several(std::span<const float> scores, size_t count, uint64_t seed, uint64_t request,
                                 size_t position);

}  // namespace easydel::generation
