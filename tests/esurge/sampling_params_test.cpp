// Defaults and errors of a request's parameters, and what the sampler gets of them.
#include "easydel/esurge/sampling_params.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::test {
namespace {

using esurge::read_sampling_params;
using esurge::SamplingParams;

SamplingParams read(const char* yaml) { return read_sampling_params(parse_yaml(yaml)); }
// The whole text of the error.
std::string problem(const std::string& yaml) {
  return refusal([&] { read_sampling_params(parse_yaml(yaml)); });
}

TEST(SamplingParams, HasTheDefaultsOfEasyDeL) {
  const Value written = config::write(read("{}"));
  const Value theirs = parse_json(R"({"n": 1, "best_of": null, "presence_penalty": 0, "frequency_penalty": 0,
      "repetition_penalty": 1, "temperature": 1, "top_p": 1, "min_p": 0, "top_k": 0, "seed": null, "stop": [],
      "stop_token_ids": [], "bad_words": [], "ignore_eos": false, "max_tokens": 16, "min_tokens": 0, "logprobs": null,
      "prompt_logprobs": null, "detokenize": true, "skip_special_tokens": false,
      "include_stop_str_in_output": false, "output_kind": "cumulative", "truncate_prompt_tokens": null,
      "guided_decoding": null, "logit_bias": {}, "allowed_token_ids": null})");
  for (const auto& [name, value] : theirs.entries) {
    const Value* const found = written.find(name);
    ASSERT_TRUE(found) << name;
    if (const auto number = value.as_double())
      EXPECT_EQ(found->as_double(), number) << name;
    else
      EXPECT_EQ(to_json(*found), to_json(value)) << name;
  }
  EXPECT_TRUE(read("{}").spaces_between_special_tokens) << "which has no effect here";
  EXPECT_FALSE(read("max_tokens: null").max_tokens);
  EXPECT_EQ(read("stop: END").stop, std::vector<std::string>{"END"});
  EXPECT_EQ(read("seed: -1").seed, std::nullopt);
}

TEST(SamplingParams, RefusesWhatCannotBeDone) {
  const auto of = [](const char* place, const char* text) { return std::string("sampling_params:1:") + place + text; };
  EXPECT_EQ(problem("n: 0"), of("4", ": n: n must be at least 1, got 0."));
  EXPECT_EQ(problem("{n: 3, best_of: 2}"), of("17", ": best_of: best_of (2) must be >= n (3)."));
  EXPECT_EQ(problem("top_p: 0"), of("8", ": top_p: top_p must be in (0, 1], got 0."));
  EXPECT_EQ(problem("top_p: 1.5"), of("8", ": top_p: top_p must be in (0, 1], got 1.5."));
  EXPECT_EQ(problem("temperature: -1"), of("14", ": temperature: temperature must be non-negative, got -1."));
  EXPECT_EQ(problem("temperature: .nan"), of("14", ": temperature: temperature must be non-negative, got nan."));
  EXPECT_EQ(problem("temperature: 1e300"), of("14", ": temperature: temperature must be non-negative, got 1e+300."));
  EXPECT_EQ(problem("presence_penalty: 2.5"),
            of("19", ": presence_penalty: presence_penalty must be in [-2, 2], got 2.5."));
  EXPECT_EQ(problem("frequency_penalty: .nan"),
            of("20", ": frequency_penalty: frequency_penalty must be in [-2, 2], got nan."));
  EXPECT_EQ(problem("repetition_penalty: 1e-300"),
            of("21", ": repetition_penalty: repetition_penalty must be greater than zero, got 1e-300."));
  EXPECT_EQ(problem("{min_tokens: 20, max_tokens: 10}"),
            of("14", ": min_tokens: min_tokens (20) must be <= max_tokens (10)."));
  EXPECT_EQ(problem("{stop: x, detokenize: false}"), of("8", ": stop: stop strings require detokenize=True."));
  EXPECT_EQ(problem("{temperature: 0, n: 2}"), of("21",
                                                  ": n: n must be 1 for greedy sampling, got 2.\n"
                                                  "    raise the temperature, or ask for one answer"));
  EXPECT_EQ(problem("{temperature: 0, best_of: 2}"), of("27",
                                                        ": best_of: best_of must be 1 for greedy sampling, got 2.\n"
                                                        "    raise the temperature, or ask for one answer"));
  EXPECT_EQ(problem("max_tokens: 0"),
            of("13", ": max_tokens: 0 is out of range\n    expected an integer of at least 1, or null (default 16)"));
  EXPECT_EQ(problem("max_tokens: -5"),
            of("13", ": max_tokens: -5 is out of range\n    expected an integer of at least 1, or null (default 16)"));
  EXPECT_EQ(problem("min_p: 2"),
            of("8", ": min_p: 2 is out of range\n    expected a number from 0 to 1 (default 0.0)"));
  EXPECT_EQ(problem("top_k: -2"),
            of("8", ": top_k: -2 is out of range\n    expected an integer of at least -1 (default 0)"));
  EXPECT_EQ(problem("seed: -2"),
            of("7", ": seed: -2 is out of range\n    expected an integer of at least -1, or null (default null)"));
  EXPECT_EQ(problem("logprobs: 21"),
            of("11", ": logprobs: 21 is out of range\n    expected an integer from 0 to 20, or null (default null)"));
  EXPECT_EQ(problem("stop: ['']"), of("7", ": stop: an empty stop string would end every answer\n    take it out"));
  EXPECT_EQ(problem("bad_words: ['']"),
            of("12", ": bad_words: an empty word would forbid every answer\n    take it out"));
  EXPECT_EQ(problem("allowed_token_ids: []"),
            of("20", ": allowed_token_ids: no token is allowed\n    give at least one id, or null to allow all"));
  EXPECT_EQ(problem("logit_bias: {x: 1}"), of("13", ": logit_bias: 'x' is not a token id"));
  EXPECT_EQ(problem("logit_bias: {5: 1e400}"), of("13", ": logit_bias: the bias of token 5 is not a finite number"));
  EXPECT_EQ(problem("logit_bias: {5: 1e300}"), of("13", ": logit_bias: the bias of token 5 is not a finite number"));
  const std::string kinds = "\n    give one of json, regex, choice, grammar and json_object";
  EXPECT_EQ(problem("guided_decoding: {regex: a, json_object: true}"),
            of("18", ": guided_decoding.json: Only one guided decoding mode can be used, but multiple were specified") +
                kinds);
  EXPECT_EQ(problem("guided_decoding: {json_object: false}"), of("18", ": guided_decoding.json: is missing") + kinds);
  EXPECT_EQ(problem("guided_decoding: {json: [1]}"),
            of("25", ": guided_decoding.json: a list is not a JSON schema\n    give a map, or its text"));
}

TEST(SamplingParams, RefusesMoreThanARequestMayHave) {
  const auto many = [](const char* key, const char* open, const char* close, const auto& item, size_t count) {
    std::string yaml = std::string(key) + ": " + open;
    for (size_t i = 0; i < count; ++i) yaml += (i > 0 ? ", " : "") + item(i);
    return problem(yaml + close);
  };
  const auto word = [](size_t i) { return "w" + std::to_string(i); };
  EXPECT_EQ(many("stop", "[", "]", word, 1'000'000),
            "sampling_params:1:7: stop: 1000000 stop strings are more than 1024\n    give fewer");
  EXPECT_EQ(many("bad_words", "[", "]", word, 1025),
            "sampling_params:1:12: bad_words: 1025 words are more than 1024\n    give fewer");
  EXPECT_EQ(many(
                "logit_bias", "{", "}", [](size_t i) { return std::to_string(i) + ": 1"; }, 1025),
            "sampling_params:1:13: logit_bias: 1025 tokens are more than 1024\n"
            "    give fewer; allowed_token_ids may have any number");
  EXPECT_EQ(problem("stop: " + std::string(1025, 'x')),
            "sampling_params:1:7: stop: a stop string of 1025 bytes is longer than 1024\n    shorten it");
}

TEST(SamplingParams, SaysWhichLanguageTheAnswerIs) {
  using Kind = text::constrain::Language::Kind;
  const auto language = [](const char* yaml) { return read(yaml).guided_decoding->language(); };
  EXPECT_EQ(language("guided_decoding: {regex: 'a+'}").source, "a+");
  EXPECT_EQ(language("guided_decoding: {json: {type: object}}").source, R"({"type": "object"})");
  EXPECT_EQ(language("guided_decoding: {json: '{\"type\": \"object\"}'}").source, R"({"type": "object"})");
  EXPECT_EQ(language("guided_decoding: {choice: [a, b]}").choices, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(language("guided_decoding: {json_object: true}").kind, Kind::json_object);
  EXPECT_EQ(language("guided_decoding: {grammar: 'root ::= \"a\"'}").kind, Kind::grammar);
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
  EXPECT_EQ(problem("extra_args: {top_k: 3}"),
            "sampling_params:1:13: extra_args: has top_k\n    give it as top_k, not in extra_args");
  EXPECT_EQ(problem("extra_args: {typical_p: 0}"),
            "sampling_params:1:13: extra_args.typical_p: 0 leaves no token\n    give more than 0; 1 switches it off");
  EXPECT_NE(problem("extra_args: {no_such_field: 3}").find("no_such_field"), std::string::npos);
  for (const char* value : {"0", "65", "x", "1.5"})
    EXPECT_EQ(problem(std::string("extra_args: {prompt_lookup_num_tokens: ") + value + "}"),
              std::string("sampling_params:1:13: extra_args: has prompt_lookup_num_tokens: ") +
                  (*value == 'x' ? "\"x\"" : value) + ", which is out of range\n    give an integer from 1 to 64");
  const SamplingParams params = read("extra_args: {prompt_lookup_num_tokens: 5, no_repeat_ngram_size: 2}");
  EXPECT_EQ(params.speculation().prompt_lookup_num_tokens, 5);
  EXPECT_EQ(params.generation().no_repeat_ngram_size, 2);
}

}  // namespace
}  // namespace easydel::test
