// What warpers leave of a row of scores before a draw.
#include <cmath>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "easydel/generation/processors.h"

namespace easydel::generation {
namespace {

std::vector<float> row(size_t size, uint32_t seed) {
  std::vector<float> out(size);
  for (float& score : out) {
    seed = seed * 1664525u + 1013904223u;
    score = static_cast<float>(seed >> 8) / 1048576.0f - 8.0f;
  }
  return out;
}

std::set<size_t> possible(std::span<const float> scores) {
  std::set<size_t> out;
  for (size_t i = 0; i < scores.size(); ++i)
    if (scores[i] != never_drawn) out.insert(i);
  return out;
}

// The tokens that the cut-offs keep, computed the slow way: everything sorted, then summed from the front.
std::set<size_t> front(std::span<const float> scores, std::span<const double> order, double mass) {
  std::vector<size_t> ids(scores.size());
  std::iota(ids.begin(), ids.end(), size_t{0});
  std::ranges::stable_sort(ids, std::ranges::less{}, [&](size_t i) { return order[i]; });
  double all = 0, sum = 0;
  for (const float score : scores) all += std::exp(static_cast<double>(score));
  std::set<size_t> out;
  for (const size_t id : ids) {
    out.insert(id);
    if ((sum += std::exp(static_cast<double>(scores[id])) / all) >= mass) break;
  }
  return out;
}

TEST(Warpers, CutWhereASortedVocabularyWouldBeCut) {
  for (uint32_t seed = 0; seed < 20; ++seed)
    for (const double mass : {0.1, 0.5, 0.93}) {
      const std::vector<float> scores = row(700 + seed, seed);
      std::vector<double> descending, typical;
      double all = 0, entropy = 0;
      for (const float score : scores) all += std::exp(static_cast<double>(score));
      for (const float score : scores) entropy -= std::exp(static_cast<double>(score)) / all * (score - std::log(all));
      for (const float score : scores)
        descending.push_back(-score), typical.push_back(std::abs(std::log(all) - score - entropy));
      std::vector<float> cut = scores;
      apply(make_warpers({.top_k = 0, .top_p = mass}, 1), {}, cut);
      EXPECT_EQ(possible(cut), front(scores, descending, mass)) << seed << " " << mass;
      cut = scores;
      apply(make_warpers({.top_k = 0, .typical_p = mass}, 1), {}, cut);
      EXPECT_EQ(possible(cut), front(scores, typical, mass)) << seed << " " << mass;
    }
}

TEST(Warpers, ActOneAfterTheOtherOnWhatIsLeft) {
  std::vector<float> scores = {4, 3, 2, 1, 0};
  apply(make_warpers({.top_k = 3, .min_p = 0.2}, 1), {}, scores);
  EXPECT_EQ(possible(scores), (std::set<size_t>{0, 1}));  // of e^4, e^3, e^2 two are at least a fifth of the largest
}

TEST(Warpers, LeaveAsManyAsTheSearchNeeds) {
  std::vector<float> scores = {4, 3, 2, 1, 0};
  apply(make_warpers({.top_k = 1, .top_p = 0.01}, 3), {}, scores);
  EXPECT_EQ(possible(scores), (std::set<size_t>{0, 1, 2}));
}

}  // namespace
}  // namespace easydel::generation
