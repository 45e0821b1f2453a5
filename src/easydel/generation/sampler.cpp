#include "easydel/generation/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/ops/score.h"
#include "easydel/tensor/random.h"

namespace easydel::generation {
namespace {

double fraction(uint32_t high, uint32_t low) { return double((uint64_t{high} << 32 | low) >> 11) * 0x1p-53; }

}  // namespace

TokenId likeliest(std::span<const float> scores) {
  // Maxima of interleaved parts, which the compiler computes together.
  constexpr size_t parts = 16;
  if (scores.size() < parts || std::isnan(scores[0]))
    return static_cast<TokenId>(std::ranges::max_element(scores) - scores.begin());
  std::array<float, parts> highest;
  highest.fill(never_drawn);
  const size_t whole = scores.size() / parts * parts;
  for (size_t i = 0; i < whole; i += parts)
    for (size_t j = 0; j < parts; ++j) highest[j] = scores[i + j] > highest[j] ? scores[i + j] : highest[j];
  float top = never_drawn;
  for (const float one : highest) top = std::max(top, one);
  for (size_t i = whole; i < scores.size(); ++i) top = scores[i] > top ? scores[i] : top;
  return static_cast<TokenId>(std::ranges::find(scores, top) - scores.begin());
}

double draw(uint64_t seed, uint64_t choice, size_t position) {
  const auto bits = tensor::philox(tensor::key_of(seed, "sample"), position, choice);
  return fraction(bits[0], bits[1]);
}

namespace {

// What pick() finds, by exponentials in fp32; nothing: their rounding may decide it.
std::optional<TokenId> picked_by_blocks(std::span<const float> scores, float top, double number) {
  constexpr size_t block = 1024;
  constexpr double relative_error = 0x1p-22;  // of ops::exponentials
  std::array<float, block> exponentials;
  const auto compute = [&](size_t begin) {
    const size_t count = std::min(block, scores.size() - begin);
    ops::exponentials(scores.subspan(begin, count), top, std::span(exponentials).first(count));
    std::fill(exponentials.begin() + static_cast<std::ptrdiff_t>(count), exponentials.end(), 0.0F);
  };
  std::vector<double> sums;
  double sum = 0;
  for (size_t begin = 0; begin < scores.size(); begin += block) {
    compute(begin);
    std::array<double, 8> lanes = {};
    for (size_t i = 0; i < block; i += lanes.size())
      for (size_t j = 0; j < lanes.size(); ++j) lanes[j] += double(exponentials[i + j]);
    sums.push_back(std::accumulate(lanes.begin(), lanes.end(), 0.0));
    sum += sums.back();
  }
  // Both the sum and what is left of it may be wrong by their relative error.
  const double margin = 2 * relative_error * sum;
  double left = number * sum;
  for (size_t b = 0; b < sums.size(); ++b) {
    if (left - sums[b] >= margin) {
      left -= sums[b];
      continue;
    }
    compute(b * block);
    for (size_t i = 0; i < block; ++i) {
      const double before = left;
      left -= double(exponentials[i]);
      if (left >= margin) continue;
      if (before < margin || left >= -margin) return std::nullopt;
      return static_cast<TokenId>(b * block + i);
    }
  }
  return std::nullopt;
}

}  // namespace

TokenId pick(std::span<const float> scores, double number) {
  check(!scores.empty(), "sampler: a row of no scores");
  const TokenId best = likeliest(scores);
  const float top = scores[size_t(best)];
  if (!std::isfinite(top)) return best;
  // Two exponentials in fp64 of each token cost more than everything else that is done with a row of scores.
  constexpr size_t many = 2048;
  if (scores.size() >= many)
    if (const std::optional<TokenId> picked = picked_by_blocks(scores, top, number)) return *picked;
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
