// Requests before they are scheduled: their tokens and settings, and what is refused.
#include "easydel/esurge/prepared_request.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/data.h"

namespace easydel::esurge {
namespace {

constexpr int64_t vocabulary = 512, context = 128;

std::shared_ptr<const text::Tokenizer> tokenizer_of(const char* folder) {
  return text::Tokenizer::load(test::test_data(std::string("models/") + folder));
}

PreparedRequest prepare(const Request& request, const EsurgeConfig& config = {},
                        const char* folder = "stories260K-hf") {
  generation::GenerationConfig defaults;
  defaults.eos_token_id = {2};
  return RequestPreparer(tokenizer_of(folder), config, context, vocabulary, defaults, std::nullopt).prepare(request);
}
PreparedRequest prepare(const char* json) { return prepare(read_request(parse_json(json))); }
std::string problem(const char* json) {
  return test::refusal([&] { prepare(json); });
}

TEST(PreparedRequest, FitsThePromptAndTheAnswerIntoTheContext) {
  EXPECT_EQ(prepare(R"({"prompt": ""})").scheduled.prompt, std::vector<TokenId>{1}) << "BOS";
  const PreparedRequest last = prepare(R"({"prompt": [5, 6, 7, 8], "sampling": {"truncate_prompt_tokens": 3}})");
  EXPECT_EQ(last.scheduled.prompt, (std::vector<TokenId>{6, 7, 8}));
  EXPECT_EQ(last.truncated_tokens, 1);
  const PreparedRequest capped = prepare(R"({"prompt": [5, 6, 7, 8], "sampling": {"max_tokens": 1000}})");
  EXPECT_EQ(capped.scheduled.max_tokens, 124);
  EXPECT_EQ(capped.capped_tokens, 876);
  EXPECT_EQ(prepare(R"({"prompt": [5], "sampling": {"max_tokens": null}})").scheduled.max_tokens, 127);
}

TEST(PreparedRequest, ReadsAContinuationAfterTheRightEndOfItsContext) {
  const PreparedRequest whole = prepare(R"({"prompt": [5, 6, 7], "continuation_token_ids": [8, 9]})");
  EXPECT_EQ(whole.scheduled.prompt, (std::vector<TokenId>{5, 6, 7, 8})) << "the last token is only predicted";
  EXPECT_EQ(whole.first_score(), 2);
  EXPECT_EQ(whole.scheduled.max_cached_tokens, 2);
  Request request;
  request.prompt = std::vector<TokenId>(200, 5);
  request.continuation = std::vector<TokenId>(100, 6);
  const PreparedRequest cut = prepare(request);
  EXPECT_EQ(cut.prompt_tokens(), context);
  EXPECT_EQ(cut.truncated_tokens, 299 - context);
  EXPECT_EQ(cut.first_score(), 28);
}

TEST(PreparedRequest, RefusesAContinuationThatCannotBeScored) {
  EXPECT_EQ(problem(R"({"prompt": [5], "continuation_token_ids": []})"), "continuation: has no tokens");
  EXPECT_EQ(problem(R"({"prompt": [], "continuation_token_ids": [5]})"),
            "prompt: has no tokens\n    give at least one token, such as the tokenizer's BOS");
  EXPECT_EQ(problem(R"({"prompt": [5], "continuation_token_ids": [512]})"),
            "continuation: has the token id 512; the model's vocabulary has 512\n    use the model's own tokenizer");
  EXPECT_EQ(problem(R"({"prompt": [5], "continuation_token_ids": [5], "sampling": {"logprobs": 1}})"),
            "sampling.logprobs: has no effect on the scores of a continuation\n    leave it out");
  Request request;
  request.prompt = std::vector<TokenId>{5};
  request.continuation = std::vector<TokenId>(129, 6);
  EXPECT_EQ(test::refusal([&] { prepare(request); }),
            "continuation: has 129 tokens; the engine reads at most 128\n    raise esurge.max_model_len, if the model "
            "has the positions");
}

TEST(PreparedRequest, HasTheTokensAndStringsThatEndIt) {
  const auto ends = [](const char* json) { return std::vector<int64_t>(prepare(json).config.eos_token_id); };
  EXPECT_EQ(ends(R"({"prompt": "a"})"), std::vector<int64_t>{2});
  EXPECT_EQ(ends(R"({"prompt": "a", "sampling": {"stop_token_ids": [7]}})"), (std::vector<int64_t>{2, 7}));
  EXPECT_EQ(ends(R"({"prompt": "a", "sampling": {"ignore_eos": true}})"), std::vector<int64_t>{});
  EXPECT_EQ(ends(R"({"prompt": "a", "sampling": {"ignore_eos": true, "guided_decoding": {"regex": "a"}}})"),
            std::vector<int64_t>{2})
      << "a text under a constraint has an end";
  EsurgeConfig config;
  config.extra_eos_token_ids = {9};
  config.extra_stops = {"END"};
  Request request = read_request(parse_json(R"({"prompt": "a", "sampling": {"stop": "."}})"));
  const PreparedRequest prepared = prepare(request, config);
  EXPECT_EQ(std::vector<int64_t>(prepared.config.eos_token_id), (std::vector<int64_t>{2, 9}));
  EXPECT_EQ(prepared.stops, (std::vector<std::string>{".", "END"}));
}

TEST(PreparedRequest, RefusesWhatTheModelDoesNotHave) {
  const std::string own = "\n    use the model's own tokenizer";
  EXPECT_EQ(problem(R"({"prompt": [5, 512]})"), "prompt: has the token id 512; the model's vocabulary has 512" + own);
  EXPECT_EQ(problem(R"({"prompt": [-1]})"), "prompt: has the token id -1; the model's vocabulary has 512" + own);
  EXPECT_EQ(problem(R"({"prompt": "a", "sampling": {"logit_bias": {"600": 1}}})"),
            "logit_bias: has the token id 600; the model's vocabulary has 512" + own);
  EXPECT_EQ(problem(R"({"prompt": "a", "sampling": {"allowed_token_ids": [3, 512]}})"),
            "allowed_token_ids: has the token id 512; the model's vocabulary has 512" + own);
  EXPECT_EQ(problem(R"({"prompt": "a", "sampling": {"stop_token_ids": [512]}})"),
            "stop_token_ids: has the token id 512; the model's vocabulary has 512" + own);
  const RequestPreparer without_tokenizer(nullptr, {}, context, vocabulary, {}, std::nullopt);
  EXPECT_EQ(test::refusal([&] {
              without_tokenizer.prepare(read_request(
                  parse_json(R"({"prompt": [5], "sampling": {"bad_words": ["a"], "detokenize": false}})")));
            }),
            "bad_words: the engine has no tokenizer\n    give bad_words_ids in extra_args");
  EXPECT_EQ(problem(R"({"messages": [{"role": "user", "content": "a"}]})"),
            "messages: the model has no chat template\n    give a prompt, or model.chat_template");
  EXPECT_EQ(problem(R"({"prompt": "a", "sampling": {"extra_args": {"output_logits": true}}})"),
            "extra_args.output_logits: is not built yet for the engine\n    use `easydel generate`");
  EXPECT_EQ(problem(R"({"prompt": "a", "sampling": {"n": 3, "extra_args": {"num_beams": 2}}})"),
            "n: 3 is more than num_beams 2\n    raise num_beams or lower n");
  EXPECT_EQ(problem(R"({"prompt": "a", "sampling": {"best_of": 2, "extra_args": {"num_beams": 2}}})"),
            "best_of: a beam search returns its best beams by itself\n    leave it out");
  EXPECT_EQ(problem(R"({"prompt": "a", "negative_prompt": "b"})"),
            "negative_prompt: has no effect without guidance_scale\n    give extra_args.guidance_scale, such as 1.5");
  const std::string guided = R"(, "sampling": {"max_tokens": 5, "extra_args": {"guidance_scale": 2}}})";
  EXPECT_EQ(problem((R"({"prompt": "a", "negative_prompt": [600])" + guided).c_str()),
            "negative_prompt: has the token id 600; the model's vocabulary has 512" + own);
  std::string ids = "3";
  for (int i = 0; i < 200; ++i) ids += ", 3";
  EXPECT_EQ(problem((R"({"prompt": "a", "negative_prompt": [)" + ids + "]" + guided).c_str()),
            "negative_prompt: has 201 tokens, and the answer up to 5; the context has 128\n"
            "    shorten it, or lower max_tokens");
}

TEST(PreparedRequest, ChecksParametersThatCodeHasSet) {
  Request request;
  request.prompt = "a";
  request.sampling.temperature = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(test::refusal([&] { prepare(request); }),
            "sampling_params: temperature: temperature must be non-negative, got nan.");
  request.sampling.temperature = 0;
  request.sampling.n = 2;
  EXPECT_EQ(test::refusal([&] { prepare(request); }),
            "sampling_params: n: n must be 1 for greedy sampling, got 2.\n"
            "    raise the temperature, or ask for one answer");
}

TEST(PreparedRequest, KnowsHowTheAnswerOfAConversationIsParsed) {
  Request request = read_request(parse_json(R"({"messages": [{"role": "user", "content": "Hi"}]})"));
  EsurgeConfig config;
  config.reasoning_parser = "deepseek_r1";
  const PreparedRequest prepared = prepare(request, config, "stories260K-chat");
  EXPECT_EQ(prepared.format.reasoning, "deepseek_r1");
  EXPECT_EQ(prepare(read_request(parse_json(R"({"prompt": "Hi"})")), config).format.reasoning, "");
  config.reasoning_parser = "no_such_parser";
  EXPECT_NE(test::refusal([&] { prepare(request, config, "stories260K-chat"); }).find("no_such_parser"),
            std::string::npos);
}

}  // namespace
}  // namespace easydel::esurge
