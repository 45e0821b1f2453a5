#include "easydel/generation/processors.h"

#include <cmath>

#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel::generation {
namespace {

std::vector<TokenId> ids(const Value& list) {
  std::vector<TokenId> out;
  for (const Value& item : list.items) out.push_back(static_cast<TokenId>(*item.as_int()));
  return out;
}
std::vector<float> row(const Value& list) {
  std::vector<float> out;
  for (const Value& item : list.items)
    out.push_back(item.is_text() || !item.as_double() ? -INFINITY : static_cast<float>(*item.as_double()));
  return out;
}

// Vectors made by transformers' logits processors: tests/data/trl/SOURCES.md.
TEST(Processors, GiveTheScoresOfTransformers) {
  const Value file = parse_file(test::test_data("trl/sampling/logits_processors.json"));
  int compared = 0;
  for (const Value& c : file.find("cases")->items) {
    const std::string name = c.find("name")->scalar;
    const Value& args = *c.find("args");
    const auto number = [&](const char* key, double otherwise) {
      const Value* value = args.find(key);
      return value ? *value->as_double() : otherwise;
    };
    SamplingConfig config{.top_k = 0};
    if (const Value* eos = args.find("eos_token_id")) {
      if (eos->is_list())
        for (const Value& id : eos->items) config.eos_token_id.push_back(*id.as_int());
      else
        config.eos_token_id.push_back(*eos->as_int());
    }
    size_t prompt = 0;
    bool warper = false;
    if (name == "temperature") config.temperature = number("temperature", 1), warper = true;
    else if (name == "top_k") config.top_k = static_cast<int64_t>(number("top_k", 0)), warper = true;
    else if (name == "top_p") config.top_p = number("top_p", 1), warper = true;
    else if (name == "min_p") config.min_p = number("min_p", 0), warper = true;
    else if (name == "typical") config.typical_p = number("typical_p", 1), warper = true;
    else if (name == "repetition_penalty") config.repetition_penalty = number("repetition_penalty", 1);
    else if (name == "no_repeat_ngram") config.no_repeat_ngram_size = static_cast<int64_t>(number("ngram_size", 0));
    else if (name.starts_with("min_length")) config.min_length = static_cast<int64_t>(number("min_length", 0));
    else if (name.starts_with("min_new_tokens")) {
      config.min_new_tokens = static_cast<int64_t>(number("min_new_tokens", 0));
      prompt = static_cast<size_t>(number("prompt_length", 0));
    } else if (name == "bad_words") {
      for (const Value& word : args.find("bad_words_ids")->items) {
        config.bad_words_ids.emplace_back();
        for (const Value& id : word.items) config.bad_words_ids.back().push_back(*id.as_int());
      }
    } else if (name == "suppress_tokens") {
      for (const Value& id : args.find("suppress_tokens")->items) config.suppress_tokens.push_back(*id.as_int());
    } else if (name.starts_with("suppress_at_begin")) {
      for (const Value& id : args.find("begin_suppress_tokens")->items) config.begin_suppress_tokens.push_back(*id.as_int());
      prompt = static_cast<size_t>(number("begin_index", 0));
    } else if (name == "chain") {
      config.repetition_penalty = 1.2, config.no_repeat_ngram_size = 2, config.min_length = 20, config.temperature = 0.8;
      config.top_k = 10, config.top_p = 0.85, config.eos_token_id.push_back(2);
    } else {
      continue;  // a processor that we do not have
    }
    const auto keep = static_cast<int64_t>(number("min_tokens_to_keep", 1));
    const Value& inputs = c.find("input_ids")->is_list() ? *c.find("input_ids") : *file.find("input_ids");
    const Value& before = c.find("scores_in")->is_list() ? *c.find("scores_in") : *file.find("scores");
    for (size_t i = 0; i < inputs.items.size(); ++i) {
      const std::vector<TokenId> history = ids(inputs.items[i]);
      std::vector<float> scores = row(before.items[i]);
      const std::vector<float> expected = row(c.find("scores_out")->items[i]);
      const History so_far{history, prompt};
      if (!warper) apply(make_processors(config), so_far, scores);
      if (warper || name == "chain") apply(make_warpers(config, keep), so_far, scores);
      for (size_t t = 0; t < scores.size(); ++t) {
        if (std::isinf(expected[t]))
          EXPECT_EQ(scores[t], expected[t]) << name << " " << to_json(args) << " row " << i << " token " << t;
        else
          EXPECT_NEAR(scores[t], expected[t], 1e-5 * std::abs(expected[t]) + 1e-6) << name << " " << to_json(args) << " row " << i << " token " << t;
      }
    }
    ++compared;
  }
  EXPECT_EQ(compared, 37);
}

TEST(Processors, PresenceAndFrequencyCountWhatWasGeneratedAndNotThePrompt) {
  SamplingConfig config{.presence_penalty = 0.5, .frequency_penalty = 0.25};
  const std::vector<TokenId> tokens = {0, 0, 1, 1, 2};
  std::vector<float> scores(4, 1.0f);
  apply(make_processors(config), {tokens, 2}, scores);
  EXPECT_EQ(scores, (std::vector<float>{1.0f, 0.0f, 0.25f, 1.0f}));
}

TEST(Processors, PassOverIdsBeyondTheVocabulary) {
  SamplingConfig config{.repetition_penalty = 2, .no_repeat_ngram_size = 1};
  config.suppress_tokens = {99, -1};
  const std::vector<TokenId> tokens = {1, 77};
  std::vector<float> scores(3, 1.0f);
  apply(make_processors(config), {tokens, 0}, scores);
  EXPECT_EQ(scores, (std::vector<float>{1.0f, -INFINITY, 1.0f}));
}

}  // namespace
}  // namespace easydel::generation
