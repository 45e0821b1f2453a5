#include "easydel/generation/generator.h"

#include <map>

#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::generation {
namespace {

std::shared_ptr<models::Model> story_model() {
  static const auto model = models::load_model(test::test_data("models/stories260K-hf"), [] { models::LoadOptions o; o.dtype = "fp32"; return o; }());
  return model;
}
std::shared_ptr<const text::Tokenizer> story_tokenizer() {
  static const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-hf"));
  return tokenizer;
}

// Prompt and continuation as transformers' generate() gave them: tests/data/trl/sampling/generate.json.
TEST(Generator, ContinuesAsTransformersDoesGreedily) {
  const Value file = parse_file(test::test_data("trl/sampling/generate.json"));
  int compared = 0;
  for (const Value& c : file.find("cases")->items) {
    const Value& args = *c.find("args");
    if (args.find("num_beams")) continue;  // not built yet
    std::vector<Request> requests;
    for (size_t row = 0; row < c.find("input_ids")->items.size(); ++row) {
      Request request;
      for (size_t i = 0; i < c.find("input_ids")->items[row].items.size(); ++i)
        if (*c.find("attention_mask")->items[row].items[i].as_int())
          request.prompt.push_back(static_cast<TokenId>(*c.find("input_ids")->items[row].items[i].as_int()));
      request.sampling.max_new_tokens = *args.find("max_new_tokens")->as_int();
      if (const Value* penalty = args.find("repetition_penalty")) request.sampling.repetition_penalty = *penalty->as_double();
      if (const Value* size = args.find("no_repeat_ngram_size")) request.sampling.no_repeat_ngram_size = *size->as_int();
      requests.push_back(std::move(request));
    }
    Generator generator(*story_model(), nullptr);
    const std::vector<Result> results = generator.run(requests);
    for (size_t row = 0; row < requests.size(); ++row) {
      std::vector<TokenId> all = requests[row].prompt;
      all.insert(all.end(), results[row].tokens.begin(), results[row].tokens.end());
      std::vector<TokenId> expected;
      for (const Value& id : c.find("sequences")->items[row].items) expected.push_back(static_cast<TokenId>(*id.as_int()));
      expected.erase(expected.begin(), expected.end() - static_cast<std::ptrdiff_t>(all.size()));  // left padding
      EXPECT_EQ(all, expected) << c.find("name")->scalar;
      EXPECT_EQ(results[row].reason, StopReason::length);
    }
    ++compared;
  }
  EXPECT_EQ(compared, 5);
}

std::vector<Request> drawn(size_t count) {
  std::vector<Request> requests;
  for (size_t i = 0; i < count; ++i) {
    Request request;
    request.prompt = story_tokenizer()->encode(i % 2 ? "Once upon a time, there was a big dog" : "Tom");
    request.sampling = {.do_sample = true, .temperature = 0.9, .top_k = 40, .max_new_tokens = 20 + static_cast<int64_t>(i)};
    request.sampling.eos_token_id = {1, 2};
    request.sampling.seed = 7;
    requests.push_back(std::move(request));
  }
  return requests;
}

TEST(Generator, GivesARequestTheSameTokensWhateverRunsBesideItAndHoweverItIsCut) {
  const auto requests = drawn(7);
  std::vector<std::vector<TokenId>> expected;
  for (const Result& r : Generator(*story_model(), nullptr, {.batch = 7}).run(requests)) expected.push_back(r.tokens);
  EXPECT_NE(expected[1], expected[3]);  // equal prompts of one call draw differently
  for (const GeneratorOptions options : {GeneratorOptions{.batch = 1}, {.batch = 2, .prefill_tokens = 3}, {.batch = 4, .prefill_tokens = 1}}) {
    const auto results = Generator(*story_model(), nullptr, options).run(requests);
    for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].tokens, expected[i]) << options.batch << " " << i;
  }
}

TEST(Generator, StreamsPiecesThatAddUpToTheText) {
  auto requests = drawn(3);
  std::map<size_t, std::string> streamed;
  const auto results = Generator(*story_model(), story_tokenizer())
                           .run(requests, [&](size_t i, TokenId, std::string_view piece) { return streamed[i] += piece, true; });
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].text, streamed[i]);
    EXPECT_EQ(results[i].text, story_tokenizer()->decode(results[i].tokens));
  }
}

TEST(Generator, EndsBeforeAStopStringAndWhenItIsTold) {
  Request request;
  request.prompt = story_tokenizer()->encode("Once upon a time");
  request.sampling.max_new_tokens = 60;
  const std::string whole = Generator(*story_model(), story_tokenizer()).run({request})[0].text;
  const size_t dot = whole.find('.');
  ASSERT_NE(dot, std::string::npos);
  request.sampling.stop = {"."};
  const Result stopped = Generator(*story_model(), story_tokenizer()).run({request})[0];
  EXPECT_EQ(stopped.text, whole.substr(0, dot));
  EXPECT_EQ(stopped.reason, StopReason::stop_string);

  int seen = 0;
  request.sampling.stop.clear();
  const Result cut = Generator(*story_model(), story_tokenizer()).run({request}, [&](size_t, TokenId, std::string_view) { return ++seen < 5; })[0];
  EXPECT_EQ(cut.tokens.size(), 5u);
  EXPECT_EQ(cut.reason, StopReason::cancelled);
}

std::string refusal(const Request& request, bool with_tokenizer = false) {
  try {
    Generator(*story_model(), with_tokenizer ? story_tokenizer() : nullptr).run({request});
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Generator, RefusesPromptsThatTheModelCannotRead) {
  EXPECT_EQ(refusal({}), "prompt 1: has no tokens\n    give at least one token, such as the tokenizer's BOS");
  EXPECT_EQ(refusal({.prompt = {1, 512}, .sampling = {}}),
            "prompt 1: holds the token id 512; the model's vocabulary has 512\n    use the model's own tokenizer");
  EXPECT_EQ(refusal({.prompt = std::vector<TokenId>(512, 5), .sampling = {}}),
            "prompt 1: has 512 tokens; the model has 512 positions, one of them for an answer\n    shorten the prompt");
  Request stops{.prompt = {1}, .sampling = {}};
  stops.sampling.stop = {"x"};
  EXPECT_EQ(refusal(stops), "prompt 1: stop strings need a tokenizer\n    use a folder with tokenizer.json, or stop by eos_token_id");
}

TEST(SamplingDefaults, ComeFromTheModelsFolder) {
  const SamplingConfig config = sampling_defaults(test::test_data("models/stories260K-hf"));
  EXPECT_EQ(config.eos_token_id, (config::Many<int64_t>{2}));
  EXPECT_TRUE(config.greedy());
}

}  // namespace
}  // namespace easydel::generation
