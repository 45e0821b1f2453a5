#include "easydel/generation/sampler.h"

#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/tensor/random.h"

namespace easydel::generation {
namespace {

TokenId likeliest(std::span<const float> scores) {
  return static_cast<TokenId>(std::ranges::max_element(scores) - scores.begin());
}

}  // namespace

Sampler::Sampler(const SamplingConfig& config)
    : greedy_(config.greedy()), seed_(config.seed), processors_(make_processors(config)) {
  if (!greedy_) warpers_ = make_warpers(config);
}

TokenId Sampler::choose(const History& history, std::span<const float> logits, uint64_t request) const {
  check(!logits.empty(), "sampler: a row of no scores");
  if (greedy_ && processors_.empty()) return likeliest(logits);
  std::vector<float> scores(logits.begin(), logits.end());
  apply(processors_, history, scores);
  apply(warpers_, history, scores);
  const TokenId best = likeliest(scores);
  const float top = scores[static_cast<size_t>(best)];
  if (greedy_ || !std::isfinite(top)) return best;

  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score - top));
  const auto bits = tensor::philox(tensor::key_of(seed_, "sample"), history.tokens.size(), request);
  const uint64_t wide = (uint64_t{bits[0]} << 32 | bits[1]) >> 11;
  double left = static_cast<double>(wide) * 0x1p-53 * sum;  // in [0, sum)
  TokenId last = best;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] == -INFINITY) continue;
    left -= std::exp(static_cast<double>(scores[i] - top));
    last = static_cast<TokenId>(i);
    if (left < 0) return last;
  }
  return last;  // only rounding leads here
}

}  // namespace easydel::generation
