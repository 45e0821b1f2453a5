#include "easydel/generation/sampler.h"

#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/tensor/random.h"

namespace easydel::generation {
namespace {

double fraction(uint32_t high, uint32_t low) { return double((uint64_t{high} << 32 | low) >> 11) * 0x1p-53; }

}  // namespace

TokenId likeliest(std::span<const float> scores) {
  return static_cast<TokenId>(std::ranges::max_element(scores) - scores.begin());
}

double draw(uint64_t seed, uint64_t choice, size_t position) {
  const auto bits = tensor::philox(tensor::key_of(seed, "sample"), position, choice);
  return fraction(bits[0], bits[1]);
}

TokenId pick(std::span<const float> scores, double number) {
  check(!scores.empty(), "sampler: a row of no scores");
  const TokenId best = likeliest(scores);
  const float top = scores[size_t(best)];
  if (!std::isfinite(top)) return best;
  double sum = 0;
  for (const float score : scores)
    if (score != never_drawn) sum += std::exp(double(score - top));
  double left = number * sum;
  TokenId last = best;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] == never_drawn) continue;
    left -= std::exp(double(scores[i] - top));
    last = static_cast<TokenId>(i);
    if (left < 0) return last;
  }
  return last;  // reached only by rounding
}

std::vector<size_t> pick_several(std::span<const float> scores, size_t count, uint64_t seed, size_t position) {
  const tensor::Key key = tensor::key_of(seed, "sample several");
  std::vector<std::pair<double, size_t>> noisy;  // descending; of equal ones the smaller index first
  std::vector<size_t> out, rest;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] == never_drawn || std::isnan(scores[i])) {
      if (rest.size() < count) rest.push_back(i);
      continue;
    }
    const auto bits = tensor::philox(key, uint64_t{position} << 32 | i, 0);
    const double noise = -std::log(-std::log(fraction(bits[0], bits[1]) + 0x1p-54));
    noisy.emplace_back(-(double(scores[i]) + noise), i);
  }
  const size_t drawn = std::min(count, noisy.size());
  std::ranges::partial_sort(noisy, noisy.begin() + static_cast<std::ptrdiff_t>(drawn));
  for (size_t i = 0; i < drawn; ++i) out.push_back(noisy[i].second);
  for (size_t i = 0; out.size() < count && i < rest.size(); ++i) out.push_back(rest[i]);
  return out;
}

}  // namespace easydel::generation
