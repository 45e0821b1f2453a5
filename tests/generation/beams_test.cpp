#include "easydel/generation/beams.h"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

namespace easydel::generation {
namespace {

constexpr size_t kVocabulary = 4;
constexpr TokenId kEnd = 3;

// A model of a few numbers: the log-probabilities of what follows a sequence.
std::vector<float> next(std::span<const TokenId> tokens) {
  uint32_t hash = 2166136261u;
  for (const TokenId token : tokens) hash = (hash ^ static_cast<uint32_t>(token + 1)) * 16777619u;
  std::vector<float> scores;
  for (size_t i = 0; i < kVocabulary; ++i) {
    hash = (hash ^ static_cast<uint32_t>(i)) * 16777619u;
    scores.push_back(static_cast<float>((hash >> 8) & 0xffff) / 16384.0f);
  }
  log_softmax(scores);
  return scores;
}

std::vector<Beam> search(const GenerationConfig& config, int64_t max_length) {
  Beams beams(config, {0, 1}, max_length);
  while (!beams.done()) {
    std::vector<std::vector<float>> scores;
    for (const Beam& beam : beams.running()) scores.push_back(next(beam.tokens));
    const std::vector<std::span<float>> rows(scores.begin(), scores.end());
    beams.advance(rows, [](auto) { return false; });
  }
  return beams.best(static_cast<size_t>(config.num_return_sequences));
}

// Every complete sequence by its worth.
std::map<float, std::vector<TokenId>, std::greater<>> everything(double length_penalty, size_t max_length) {
  std::map<float, std::vector<TokenId>, std::greater<>> out;
  std::vector<std::pair<std::vector<TokenId>, float>> open = {{{0, 1}, 0.0f}};
  while (!open.empty()) {
    const auto [tokens, score] = open.back();
    open.pop_back();
    const std::vector<float> scores = next(tokens);
    for (size_t i = 0; i < kVocabulary; ++i) {
      std::vector<TokenId> longer = tokens;
      longer.push_back(static_cast<TokenId>(i));
      const float sum = score + scores[i];
      if (longer.back() == kEnd || longer.size() == max_length)
        out[sum / static_cast<float>(std::pow(static_cast<double>(longer.size() - 2), length_penalty))] = longer;
      else
        open.emplace_back(longer, sum);
    }
  }
  return out;
}

TEST(Beams, FindTheBestOfAllSequencesWhereTheyAreWideEnough) {
  for (const double penalty : {0.0, 1.0, 2.0}) {
    const GenerationConfig config{.eos_token_id = {kEnd},
                                  .num_return_sequences = 5,
                                  .num_beams = 200,
                                  .early_stopping = EarlyStopping::never,
                                  .length_penalty = penalty};
    const auto expected = everything(penalty, 6);
    const std::vector<Beam> found = search(config, 6);
    ASSERT_EQ(found.size(), 5u);
    auto best = expected.begin();
    for (const Beam& beam : found) {
      EXPECT_EQ(beam.tokens, best->second) << penalty;
      EXPECT_EQ(beam.score, best->first);
      ++best;
    }
  }
}

TEST(Beams, StopAtTheFirstCompleteOnesWithEarlyStopping) {
  GenerationConfig config{.eos_token_id = {kEnd},
                          .num_return_sequences = 2,
                          .num_beams = 2,
                          .early_stopping = EarlyStopping::yes,
                          .length_penalty = 2.0};
  const auto early = search(config, 40);
  config.early_stopping = EarlyStopping::never;
  const auto late = search(config, 40);
  EXPECT_LT(early[0].tokens.size(), late[0].tokens.size());
  EXPECT_LT(early[0].score, late[0].score);
}

TEST(Beams, TellWhichOnesWereContinued) {
  const GenerationConfig config{.eos_token_id = {kEnd}, .num_return_sequences = 3, .num_beams = 3};
  for (const Beam& beam : search(config, 8)) {
    EXPECT_EQ(beam.parents.size(), beam.tokens.size() - 2);
    EXPECT_EQ(beam.parents[0], 0);
    for (const int64_t parent : beam.parents) EXPECT_TRUE(parent >= 0 && parent < 3);
  }
}

TEST(Beams, DrawTheSameForOneSeedAndOtherwiseAnother) {
  GenerationConfig config{.do_sample = true, .seed = 5, .num_return_sequences = 2, .num_beams = 3};
  const auto tokens = [&] {
    std::vector<std::vector<TokenId>> out;
    for (const Beam& beam : search(config, 14)) out.push_back(beam.tokens);
    return out;
  };
  const auto first = tokens();
  EXPECT_EQ(first, tokens());
  config.seed = 6;
  EXPECT_NE(first, tokens());
}

}  // namespace
}  // namespace easydel::generation
