// Models, random requests and their results as bits, for tests that compare them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "easydel/esurge/step_engine.h"
#include "easydel/models/model.h"

namespace easydel::esurge {

class Random {
 public:
  explicit Random(uint64_t seed) : source_(seed) {}
  int64_t from(int64_t low, int64_t high) { return low + int64_t(source_() % uint64_t(high - low + 1)); }
  bool chance(int64_t percent) { return from(0, 99) < percent; }

 private:
  std::mt19937_64 source_;
};

struct Subject {
  std::string name, folder, dtype;
  bool coded = false;  // linear layers in a8bit
  nn::CacheSetting cache = {};
  int64_t longest = 200;        // tokens of a sequence
  int64_t schedules = 5;        // of a run that asks for no other number
  std::string activation = {};  // instead of the model's own
};

std::vector<Subject> subjects();
// Models whose cache is codes, which their own forward without a cache does not read.
std::vector<Subject> coded_cache_subjects();

// The whole result of a request as text that is equal if and only if all of its bits are.
std::string bits_of(const RequestOutput& output);
// Of requests that are added at once.
std::vector<std::string> answers(StepEngine& engine, const std::vector<Request>& requests);

// An engine with `pages` pages, or the fewest more that let it take every request; `roomy`: with four times as many.
std::unique_ptr<StepEngine> engine_for(EngineSetup setup, const std::vector<Request>& requests, int64_t pages,
                                       bool roomy);

class SameBits : public testing::TestWithParam<Subject> {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();

  void SetUp() override;
  EngineSetup setup(int64_t page_size, std::optional<int64_t> pages) const;
  std::vector<Request> requests(Random& random, int64_t count) const;
  std::vector<std::string> alone(const std::vector<Request>& requests) const;

  std::shared_ptr<models::Model> model_;
  std::shared_ptr<models::Model> draft_;  // the same in another dtype: its guesses are sometimes wrong
  std::shared_ptr<const text::Tokenizer> tokenizer_;
};

}  // namespace easydel::esurge
