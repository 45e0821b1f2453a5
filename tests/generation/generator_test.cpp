#include "easydel/generation/generator.h"

#include <atomic>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/models/adapter.h"
#include "easydel/models/adapters.h"
#include "easydel/tensor/executor.h"
#include "support/data.h"

namespace easydel::generation {
namespace {

std::shared_ptr<models::Model> story_model() {
  static const auto model = models::load_model(test::test_data("models/stories260K-hf"), [] {
    models::LoadOptions o;
    o.dtype = models::DTypeSetting::fp32;
    return o;
  }());
  return model;
}
std::shared_ptr<const text::Tokenizer> story_tokenizer() {
  static const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-hf"));
  return tokenizer;
}

std::vector<Request> drawn(size_t count) {
  std::vector<Request> requests;
  for (size_t i = 0; i < count; ++i) {
    Request request;
    request.prompt = story_tokenizer()->encode(i % 2 ? "Once upon a time, there was a big dog" : "Tom");
    request.config = {
        .max_new_tokens = 20 + static_cast<int64_t>(i), .do_sample = true, .temperature = 0.9, .top_k = 40};
    request.config.eos_token_id = {1, 2};
    request.config.seed = 7;
    requests.push_back(std::move(request));
  }
  return requests;
}

TEST(Generator, GivesARequestTheSameTokensInAnyBatchAndHoweverItIsCut) {
  const auto requests = drawn(7);
  std::vector<std::vector<TokenId>> expected;
  for (const Result& r : Generator(*story_model(), nullptr, {.batch = 7}).run(requests)) expected.push_back(r.tokens);
  EXPECT_TRUE(std::equal(expected[1].begin(), expected[1].end(), expected[3].begin()));  // equal prompts, equal draws
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(Generator(*story_model(), nullptr).run({requests[i]})[0].tokens, expected[i]) << "alone " << i;
  for (const GeneratorOptions& options :
       {GeneratorOptions{.batch = 1}, {.batch = 2, .prefill_tokens = 3}, {.batch = 4, .prefill_tokens = 1}}) {
    const auto results = Generator(*story_model(), nullptr, options).run(requests);
    for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].tokens, expected[i]) << options.batch << " " << i;
  }
}

// By draws, by beams and with guidance.
TEST(Generator, GivesRequestsWithAdaptersTheTokensOfModelsWithThoseAdapters) {
  const auto folder = test::test_data("models/stories260K-hf");
  const test::TemporaryFolder work;
  const auto load = [&](const models::AdapterOptions& adapter) {
    models::LoadOptions options;
    options.dtype = models::DTypeSetting::fp32;
    options.adapters = {adapter};
    return models::load_model(folder, options);
  };
  const auto write = [&](uint64_t seed, const std::string& name) {
    models::AdapterOptions options;
    options.config.init_lora_weights = {models::LoraInit::random};
    options.seed = seed;
    const auto model = load(options);
    models::save_adapter(*model, *model->adapters().front(), work / name, "");
    return load(models::adapter_in(work / name));
  };
  const std::shared_ptr<models::Model> models[] = {story_model(), write(1, "a"), write(2, "b")};
  models::Adapters adapters(story_model());
  const models::Adapters::Loaded loaded[] = {nullptr, adapters.add("a", work / "a"), adapters.add("b", work / "b")};
  std::vector<Request> requests = drawn(6);
  requests[4].config.do_sample = false, requests[4].config.num_beams = 3;
  // One beam after the first token: the others begin anew as its copies.
  requests[4].allowed = [mask = std::vector<uint64_t>(8), prompt = requests[4].prompt.size()](
                            std::span<const TokenId> tokens) mutable -> std::span<const uint64_t> {
    std::ranges::fill(mask, tokens.size() > prompt ? ~uint64_t(0) : 0);
    mask[5] |= 1;
    return mask;
  };
  requests[5].config.guidance_scale = 1.5;
  for (size_t i = 0; i < requests.size(); ++i) requests[i].adapter = loaded[i % 3];
  const auto results = Generator(*story_model(), nullptr).run(requests);
  std::set<std::vector<TokenId>> different;
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].adapter = nullptr;
    const Result expected = Generator(*models[i % 3], nullptr).run({requests[i]})[0];
    EXPECT_EQ(results[i].tokens, expected.tokens) << i;
    EXPECT_EQ(results[i].score, expected.score) << i;
    different.insert(results[i].tokens);
  }
  EXPECT_EQ(different.size(), requests.size());
}

TEST(Generator, WritesTheSameTokensOnExecutorsOfTheirOwnSideBySide) {
  const auto requests = drawn(4);
  const auto model = story_model();
  const auto expected = Generator(*model, nullptr).run(requests);
  const auto run = [&](int threads) {
    const auto pool = kernels::make_pool(threads);
    const tensor::UseExecutor use(*pool);
    for (int i = 0; i < 3; ++i) {
      const auto results = Generator(*model, nullptr).run(requests);
      for (size_t r = 0; r < results.size(); ++r) EXPECT_EQ(results[r].tokens, expected[r].tokens) << threads;
    }
  };
  for (const auto& [first, second] : {std::pair{1, 1}, {2, 3}}) {
    std::thread other(run, second);
    run(first);
    other.join();
  }
}

// The prompt's text and a result's are the text of all tokens, so the space between them is kept.
void expect_continues(const Result& result, const Request& request) {
  std::vector<TokenId> all = request.prompt;
  all.insert(all.end(), result.tokens.begin(), result.tokens.end());
  EXPECT_EQ(story_tokenizer()->decode(request.prompt) + result.text, story_tokenizer()->decode(all));
}

TEST(Generator, StreamsPiecesThatAddUpToTheText) {
  auto requests = drawn(3);
  std::map<size_t, std::string> streamed;
  const auto results =
      Generator(*story_model(), story_tokenizer()).run(requests, [&](size_t i, TokenId, std::string_view piece) {
        return streamed[i] += piece, true;
      });
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].text, streamed[i]);
    expect_continues(results[i], requests[i]);
  }
}

TEST(Generator, KeepsTheSpaceBeforeAContinuationAndSaysWhenAResultIsComplete) {
  for (const int64_t beams : {1, 2}) {
    std::vector<Request> requests;
    for (const char* prompt : {"One day, Max", "Once upon a", ""})
      requests.push_back({story_tokenizer()->encode(prompt), {.max_new_tokens = 5, .num_beams = beams}});
    std::map<size_t, std::string> complete;
    const auto results =
        Generator(*story_model(), story_tokenizer()).run(requests, {}, [&](size_t i, const Result& result) {
          complete[i] = result.text;
        });
    ASSERT_EQ(complete.size(), results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(complete[i], results[i].text);
      expect_continues(results[i], requests[i]);
    }
    EXPECT_TRUE(results[0].text.starts_with(" ")) << results[0].text;
    EXPECT_FALSE(results[2].text.starts_with(" ")) << results[2].text;
  }
}

TEST(Generator, EndsBeforeAStopStringAndWhenItIsTold) {
  Request request;
  request.prompt = story_tokenizer()->encode("Once upon a time");
  request.config.max_new_tokens = 60;
  const std::string whole = Generator(*story_model(), story_tokenizer()).run({request})[0].text;
  const size_t dot = whole.find('.');
  ASSERT_NE(dot, std::string::npos);
  request.config.stop_strings = {"."};
  const Result stopped = Generator(*story_model(), story_tokenizer()).run({request})[0];
  EXPECT_EQ(stopped.text, whole.substr(0, dot));
  EXPECT_EQ(stopped.reason, StopReason::stop_string);

  int seen = 0;
  request.config.stop_strings.clear();
  const Result cut =
      Generator(*story_model(), story_tokenizer()).run({request}, [&](size_t, TokenId, std::string_view) {
        return ++seen < 5;
      })[0];
  EXPECT_EQ(cut.tokens.size(), 5u);
  EXPECT_EQ(cut.reason, StopReason::cancelled);
}

std::shared_ptr<models::Model> golden_model(const std::string& name) {
  models::LoadOptions options;
  options.dtype = models::DTypeSetting::fp32;
  return models::load_model(test::test_data("hf_goldens/" + name), options);
}

std::vector<Request> beams_of(std::vector<std::vector<TokenId>> prompts, const GenerationConfig& config) {
  std::vector<Request> out;
  for (auto& prompt : prompts) out.push_back({std::move(prompt), config});
  return out;
}

// Full attention, a window shorter than the text, and states that are copied whole.
TEST(Generator, GivesBeamsTheSameBitsAloneInABatchAndWithoutACache) {
  for (const char* name : {"llama", "mistral", "mamba", "jamba"}) {
    const auto model = golden_model(name);
    GenerationConfig config{.max_new_tokens = 14, .num_return_sequences = 3, .num_beams = 4, .repetition_penalty = 1.1};
    const auto requests = beams_of({{5, 9, 17}, {8}, {4, 4, 7, 30, 31, 6, 12}}, config);
    const auto together = Generator(*model, nullptr).run(requests);
    ASSERT_EQ(together.size(), 9u);
    for (size_t i = 0; i < requests.size(); ++i) {
      Request alone = requests[i];
      const auto expected = Generator(*model, nullptr, {.batch = 1, .prefill_tokens = 2}).run({alone});
      alone.config.use_cache = false;
      const auto anew = Generator(*model, nullptr).run({alone});
      for (size_t j = 0; j < 3; ++j) {
        EXPECT_EQ(together[3 * i + j].tokens, expected[j].tokens) << name << " " << i << " " << j;
        EXPECT_EQ(together[3 * i + j].score, expected[j].score) << name << " " << i << " " << j;
        EXPECT_EQ(anew[j].tokens, expected[j].tokens) << name << " " << i << " " << j;
        EXPECT_EQ(anew[j].score, expected[j].score) << name << " " << i << " " << j;
      }
    }
  }
}

// Also sampled beams: the draws of the second of two equal requests are those of the first.
TEST(Generator, DrawsBeamsOfARequestAsItDoesAlone) {
  const GenerationConfig config{
      .max_new_tokens = 10, .do_sample = true, .seed = 4, .num_return_sequences = 2, .num_beams = 3};
  const auto together = Generator(*story_model(), nullptr).run(beams_of({{1, 403, 407}, {1, 403, 407}}, config));
  ASSERT_EQ(together.size(), 4u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(together[i].tokens, together[2 + i].tokens) << i;
}

TEST(Generator, ScoresOfABeamAreTheSumOfItsRows) {
  GenerationConfig config{.max_new_tokens = 9, .num_return_sequences = 2, .num_beams = 3, .length_penalty = 0.5};
  config.output_scores = config.output_logits = true;
  for (const Result& result : Generator(*story_model(), nullptr).run({{{1, 403, 407}, config}})) {
    ASSERT_EQ(result.scores.size(), 9u);
    ASSERT_EQ(result.logits.size(), 9u);
    EXPECT_EQ(result.beam_indices.size(), 9u);
    float sum = 0;
    for (size_t i = 0; i < 9; ++i) sum += result.scores[i][static_cast<size_t>(result.tokens[i])];
    EXPECT_NEAR(result.score, sum / 3.0f, 1e-5);
    std::vector<float> row = result.logits[4];
    log_softmax(row);
    EXPECT_EQ(row, result.scores[4]);
  }
}

TEST(Generator, DrawsSeveralContinuationsOfOnePrompt) {
  Request request{{1, 403, 407},
                  {.max_new_tokens = 12, .do_sample = true, .seed = 3, .num_return_sequences = 3, .temperature = 2.0}};
  request.config.output_scores = true;
  const auto results = Generator(*story_model(), nullptr, {.batch = 2}).run({request, request});
  ASSERT_EQ(results.size(), 6u);
  for (size_t i = 1; i < 3; ++i) EXPECT_NE(results[0].tokens, results[i].tokens) << i;
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i].tokens, results[3 + i].tokens) << i;
  EXPECT_EQ(results[0].scores.size(), 12u);
}

TEST(Generator, CountsThePromptInMaxLengthAndNotInMaxNewTokens) {
  Request request{{1, 403, 407, 261}, {.max_length = 10}};
  const auto length = [&] { return Generator(*story_model(), nullptr).run({request})[0].tokens.size(); };
  EXPECT_EQ(length(), 6u);
  request.config.max_new_tokens = 8;  // takes precedence over max_length
  EXPECT_EQ(length(), 8u);
  request.config.forced_eos_token_id = {9};
  EXPECT_EQ(Generator(*story_model(), nullptr).run({request})[0].tokens.back(), 9);
}

TEST(Generator, EndsAfterTheTokenInWhichItsTimeIsUp) {
  Request request{{1, 403, 407}, {.max_time = 0.0}};
  const Result one = Generator(*story_model(), nullptr).run({request})[0];
  EXPECT_EQ(one.tokens.size(), 1u);
  EXPECT_EQ(one.reason, StopReason::max_time);
  request.config.num_beams = 3;
  const Result beam = Generator(*story_model(), nullptr).run({request})[0];
  EXPECT_EQ(beam.tokens, one.tokens);
  EXPECT_EQ(beam.reason, StopReason::max_time);
}

TEST(Generator, FollowsTheCallersConstraint) {
  for (const int64_t beams : {1, 3}) {
    Request request{{1, 403}, {.max_new_tokens = 7, .num_beams = beams}};
    request.allowed = [](std::span<const TokenId> tokens) {
      static constexpr uint64_t kOdd[] = {3ull << 20}, kEven[] = {3ull << 30};
      return std::span<const uint64_t>(tokens.size() % 2 ? kOdd : kEven);
    };
    const std::vector<TokenId> tokens = Generator(*story_model(), nullptr).run({request})[0].tokens;
    ASSERT_EQ(tokens.size(), 7u);
    for (size_t i = 0; i < 7; ++i) EXPECT_EQ(tokens[i] / 10, i % 2 ? 2 : 3) << beams << " " << i;
  }
}

TEST(Generator, IsLedAwayFromTheNegativePrompt) {
  Request request{story_tokenizer()->encode("Once upon a time"), {.max_new_tokens = 16, .guidance_scale = 3.0}};
  const auto tokens = [&] {
    return Generator(*story_model(), nullptr, {.prefill_tokens = 2}).run({request})[0].tokens;
  };
  const auto from_last = tokens();
  request.negative_prompt = {request.prompt.back()};
  EXPECT_EQ(tokens(), from_last);
  request.negative_prompt = story_tokenizer()->encode("Tom and his dog went to the park to play with a ball");
  EXPECT_NE(tokens(), from_last);
  request.negative_prompt = request.prompt;  // guidance without a difference
  const auto same = tokens();
  request.config.guidance_scale = 1;
  EXPECT_EQ(tokens(), same);
}

TEST(Generator, EndsBeamsAtStopStringsAndGivesTheirWholeText) {
  Request request{story_tokenizer()->encode("Once upon a time"),
                  {.max_new_tokens = 40, .num_return_sequences = 2, .num_beams = 2}};
  request.config.stop_strings = {", there"};
  std::map<size_t, std::string> texts;
  const auto results =
      Generator(*story_model(), story_tokenizer()).run({request}, [&](size_t i, TokenId, std::string_view text) {
        return texts[i] += text, true;
      });
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(results[i].text, texts[i]);
    EXPECT_EQ(results[i].text.find(", there"), std::string::npos);
  }
  EXPECT_EQ(results[0].reason, StopReason::stop_string);
}

TEST(Generator, EndsWithWhatIsThereWhenItIsToldTo) {
  std::atomic<bool> stop = false;
  int seen = 0;
  Request request{{1, 403, 407}, {.max_new_tokens = 50}}, beams = request;
  beams.config.num_beams = 2;
  const auto results =
      Generator(*story_model(), nullptr, {.stop = &stop}).run({request, beams}, [&](size_t, TokenId, std::string_view) {
        if (++seen == 4) stop = true;
        return true;
      });
  EXPECT_EQ(results[0].tokens.size(), 4u);
  EXPECT_EQ(results[1].tokens.size(), 4u);
  for (const Result& result : results) EXPECT_EQ(result.reason, StopReason::cancelled);
}

std::string refusal(const Request& request, bool with_tokenizer = false) {
  try {
    Generator(*story_model(), with_tokenizer ? story_tokenizer() : nullptr).run({request});
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Generator, RefusesToChooseAmongScoresThatAreNoNumbers) {
  const auto model = models::copy_model(*story_model());
  model->parameters().find("model.norm.weight")->shard.fill_(std::numeric_limits<float>::quiet_NaN());
  const auto run = [&](bool remove) {
    Request request{.prompt = {1}, .config = {.max_new_tokens = 1}};
    request.config.remove_invalid_values = remove;
    Generator(*model, nullptr, {}).run({request});
  };
  EXPECT_EQ(test::refusal([&] { run(false); }),
            "model.norm.weight: holds values that are not finite (NaN or infinity), so the model's scores are NaN\n    "
            "fetch the weights again, or go back to a checkpoint from before the training diverged");
  run(true);
}

TEST(Generator, RefusesPromptsThatTheModelCannotRead) {
  EXPECT_EQ(refusal({}), "prompt 1: has no tokens\n    give at least one token, such as the tokenizer's BOS");
  EXPECT_EQ(refusal({.prompt = {1, 512}, .config = {}}),
            "prompt 1: holds the token id 512; the model's vocabulary has 512\n    use the model's own tokenizer");
  EXPECT_EQ(refusal({.prompt = std::vector<TokenId>(512, 5), .config = {}}),
            "prompt 1: has 512 tokens; the model has 512 positions, one of them for an answer\n    shorten the prompt");
  EXPECT_EQ(refusal({{1, 2, 3}, {.max_length = 3}}),
            "prompt 1: has 3 tokens, and max_length is 3\n    raise max_length, or give max_new_tokens");
  EXPECT_EQ(refusal({{1}, {.sequence_bias = {{{3, 600}, 1.0}}}}),
            "generation.sequence_bias: holds the token id 600; the model's vocabulary has 512\n    use the model's own "
            "tokenizer");
  for (const int64_t end : {-1, 512}) {
    Request ends{.prompt = {1}, .config = {}};
    ends.config.eos_token_id = {2, end};
    ends.config.given.insert("eos_token_id");
    EXPECT_EQ(refusal(ends), str("generation.eos_token_id: has the token id ", end,
                                 "; the model's vocabulary has 512\n    use the model's own tokenizer"));
  }
  Request stops{.prompt = {1}, .config = {}};
  stops.config.stop_strings = {"x"};
  EXPECT_EQ(refusal(stops),
            "prompt 1: stop strings need a tokenizer\n    use a folder with tokenizer.json, or stop by eos_token_id");
}

}  // namespace
}  // namespace easydel::generation
