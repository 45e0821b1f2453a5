// Choosing one token from a row of scores: the likeliest, or a draw that depends on seed, request and position alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "easydel/generation/processors.h"

namespace easydel::generation {

class Sampler {
 public:
  explicit Sampler(const SamplingConfig& config);

  // The token after `history`, from raw logits [vocabulary]. Of equal scores the smallest id wins. `request` keeps
  // the draws of one call's requests apart; a request's draws do not depend on what runs beside it.
  TokenId choose(const History& history, std::span<const float> logits, uint64_t request) const;

 private:
  bool greedy_;
  uint64_t seed_;
  Chain processors_, warpers_;
};

}  // namespace easydel::generation
