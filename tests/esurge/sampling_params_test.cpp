// Defaults and errors of a request's parameters, and what the sampler gets of them.
#include "easydel/esurge/sampling_params.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::test {
namespace {

using esurge::read_sampling_params;
using esurge::SamplingParams;

SamplingParams read(const char* yaml) { return read_sampling_params(parse_yaml(yaml)); }
// The first line of the error.
std::string problem(const char* yaml) {
  const std::string text = refusal([&] { read(yaml); });
  return text.substr(0, text.find('\n'));
}

TEST(SamplingParams, HasTheDefaultsOfEasyDeL) {
  const SamplingParams params = read("{}");
  EXPECT_EQ(params.n, 1);
  EXPECT_EQ(params.temperature, 1);
  EXPECT_EQ(params.top_p, 1);
  EXPECT_EQ(params.top_k, 0);
  EXPECT_EQ(params.repetition_penalty, 1);
  EXPECT_EQ(params.max_tokens, 16);
  EXPECT_TRUE(params.detokenize);
  EXPECT_FALSE(params.skip_special_tokens);
  EXPECT_FALSE(read("max_tokens: null").max_tokens);
  EXPECT_EQ(read("stop: END").stop, std::vector<std::string>{"END"});
  EXPECT_EQ(read("seed: -1").seed, std::nullopt);
}

TEST(SamplingParams, RefusesWhatCannotBeDone) {
  EXPECT_EQ(problem("n: 0"), "sampling_params:1:4: n: n must be at least 1, got 0.");
  EXPECT_EQ(problem("{n: 3, best_of: 2}"), "sampling_params:1:17: best_of: best_of (2) must be >= n (3).");
  EXPECT_EQ(problem("top_p: 0"), "sampling_params:1:8: top_p: top_p must be in (0, 1], got 0.");
  EXPECT_EQ(problem("top_p: 1.5"), "sampling_params:1:8: top_p: top_p must be in (0, 1], got 1.5.");
  EXPECT_EQ(problem("temperature: -1"), "sampling_params:1:14: temperature: temperature must be non-negative, got -1.");
  EXPECT_EQ(problem("temperature: .nan"),
            "sampling_params:1:14: temperature: temperature must be non-negative, got nan.");
  EXPECT_EQ(problem("presence_penalty: 2.5"),
            "sampling_params:1:19: presence_penalty: presence_penalty must be in [-2, 2], got 2.5.");
  EXPECT_EQ(problem("{min_tokens: 20, max_tokens: 10}"),
            "sampling_params:1:14: min_tokens: min_tokens (20) must be <= max_tokens (10).");
  EXPECT_EQ(problem("{stop: x, detokenize: false}"),
            "sampling_params:1:8: stop: stop strings require detokenize=True.");
  EXPECT_EQ(problem("{temperature: 0, n: 2}"), "sampling_params:1:21: n: n must be 1 for greedy sampling, got 2.");
  EXPECT_EQ(problem("max_tokens: 0"), "sampling_params:1:13: max_tokens: 0 is out of range");
  EXPECT_EQ(problem("min_p: 2"), "sampling_params:1:8: min_p: 2 is out of range");
  EXPECT_EQ(problem("top_k: -2"), "sampling_params:1:8: top_k: -2 is out of range");
  EXPECT_EQ(problem("seed: -2"), "sampling_params:1:7: seed: -2 is out of range");
  EXPECT_EQ(problem("stop: ['']"), "sampling_params:1:7: stop: an empty stop string would end every answer");
  EXPECT_EQ(problem("allowed_token_ids: []"), "sampling_params:1:20: allowed_token_ids: no token is allowed");
  EXPECT_EQ(problem("logit_bias: {x: 1}"), "sampling_params:1:13: logit_bias: 'x' is not a token id");
  EXPECT_EQ(problem("logit_bias: {5: 1e400}"),
            "sampling_params:1:13: logit_bias: the bias of token 5 is not a finite number");
  EXPECT_EQ(problem("guided_decoding: {regex: a, json_object: true}"),
            "sampling_params:1:18: guided_decoding.json: Only one guided decoding mode can be used, but multiple "
            "were specified");
  EXPECT_EQ(problem("adapter: a"), "sampling_params:1:10: adapter: an adapter for one request is not built yet");
}

TEST(SamplingParams, GivesTheSamplerItsFields) {
  const generation::GenerationConfig drawn =
      read(
          "{temperature: 0.7, top_p: 0.9, top_k: -1, seed: 7, max_tokens: 5, logit_bias: {12: -3}, "
          "extra_args: {no_repeat_ngram_size: 3}}")
          .generation();
  EXPECT_TRUE(drawn.do_sample);
  EXPECT_EQ(drawn.temperature, 0.7);
  EXPECT_EQ(drawn.top_k, 0);
  EXPECT_EQ(drawn.seed, 7u);
  EXPECT_EQ(drawn.max_new_tokens, 5);
  EXPECT_EQ(drawn.no_repeat_ngram_size, 3);
  ASSERT_EQ(drawn.sequence_bias.size(), 1u);
  EXPECT_EQ(drawn.sequence_bias[0].tokens, std::vector<int64_t>{12});
  EXPECT_TRUE(read("temperature: 0").generation().greedy());
}

TEST(SamplingParams, TakesOtherFieldsOfGenerationConfigOnce) {
  EXPECT_EQ(problem("extra_args: {top_k: 3}"), "sampling_params:1:13: extra_args: has top_k");
  EXPECT_NE(problem("extra_args: {no_such_field: 3}").find("no_such_field"), std::string::npos);
}

}  // namespace
}  // namespace easydel::test
