// Requests that are written as documents.
#include "easydel/esurge/request.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/data.h"

namespace easydel::test {
namespace {

using esurge::Conversation;
using esurge::read_request;
using esurge::Request;
using esurge::TokenId;

Request read(const char* json) { return read_request(parse_json(json)); }
std::string problem(const char* json) {
  return refusal([&] { read(json); });
}

TEST(Request, TakesAPromptInThreeForms) {
  EXPECT_EQ(std::get<std::string>(read(R"({"prompt": ""})").prompt), "");
  EXPECT_EQ(std::get<std::string>(read(R"({"prompt": "12"})").prompt), "12");
  EXPECT_EQ(std::get<std::vector<TokenId>>(read(R"({"prompt": [1, 2]})").prompt), (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(std::get<std::vector<TokenId>>(read(R"({"prompt_token_ids": []})").prompt), std::vector<TokenId>{});
  const Request chat = read(
      R"({"messages": [{"role": "user", "content": "Hi"}], "tools": [{"name": "f"}],
          "chat_template_kwargs": {"enable_thinking": false}, "request_id": "r7"})");
  const auto& conversation = std::get<Conversation>(chat.prompt);
  EXPECT_EQ(conversation.messages.items.size(), 1u);
  EXPECT_EQ(conversation.tools.items.size(), 1u);
  EXPECT_TRUE(conversation.chat_template_kwargs.find("enable_thinking"));
  EXPECT_EQ(chat.request_id, "r7");
}

TEST(Request, TakesANegativePromptAsTextOrIds) {
  EXPECT_FALSE(read(R"({"prompt": "a"})").negative_prompt);
  EXPECT_EQ(std::get<std::string>(*read(R"({"prompt": "a", "negative_prompt": "b"})").negative_prompt), "b");
  EXPECT_EQ(std::get<std::vector<TokenId>>(*read(R"({"prompt": "a", "negative_prompt": [4]})").negative_prompt),
            std::vector<TokenId>{4});
  EXPECT_EQ(problem(R"({"prompt": "a", "negative_prompt": {}})"),
            "request:1:36: negative_prompt: is neither text nor a list of token ids\n"
            "    give such as \"Hello\" or [1, 15043]");
}

TEST(Request, KeepsIdsBeyondTheTypeOutsideEveryVocabulary) {
  const Request request = read(R"({"prompt": [-5000000000, -1, 5000000000]})");
  EXPECT_EQ(std::get<std::vector<TokenId>>(request.prompt),
            (std::vector<TokenId>{std::numeric_limits<TokenId>::min(), -1, std::numeric_limits<TokenId>::max()}));
}

TEST(Request, TakesSomeSamplingParametersBesideThePrompt) {
  const Request request = read(
      R"({"prompt": "a", "priority": -3, "cache_salt": "s", "timeout_seconds": 2.5, "sampling": {"max_tokens": 5}})");
  EXPECT_EQ(request.sampling.priority, -3);
  EXPECT_EQ(request.sampling.cache_salt, "s");
  EXPECT_EQ(request.sampling.timeout_seconds, 2.5);
  EXPECT_EQ(request.sampling.max_tokens, 5);
}

TEST(Request, RefusesWhatIsNotOne) {
  const std::string one = "give one of prompt, prompt_token_ids and messages";
  EXPECT_EQ(problem("{}"), "request: prompt: is missing\n    " + one);
  EXPECT_EQ(problem(R"({"prompt": "a", "messages": [{"role": "user"}]})"),
            "request:1:12: prompt: a request has one prompt, but several are given\n    " + one);
  EXPECT_EQ(problem(R"({"prompt": 7})"),
            "request:1:12: prompt: is neither text nor a list of token ids\n    give such as \"Hello\" or [1, 15043]");
  EXPECT_EQ(problem(R"({"prompt": [1, "x"]})"),
            "request:1:12: prompt: is neither text nor a list of token ids\n    give such as \"Hello\" or [1, 15043]");
  EXPECT_EQ(problem(R"({"messages": []})"),
            "request:1:14: messages: is not a list of messages\n"
            "    give at least one, such as [{\"role\": \"user\", \"content\": \"Hello\"}]");
  EXPECT_EQ(problem(R"({"prompt": "a", "tools": []})"),
            "request:1:26: tools: is only for a conversation\n    give messages instead of another prompt");
  EXPECT_EQ(problem(R"({"messages": [{}], "tools": {}})"), "request:1:29: tools: is not a list of tools");
  EXPECT_EQ(problem(R"({"prompt": "a", "priority": 1, "sampling": {"priority": 1}})"),
            "request:1:29: priority: is also in sampling\n    give it once");
  EXPECT_EQ(problem(R"({"prompt": "a", "sampling": {"n": 0}})"),
            "request:1:35: sampling.n: n must be at least 1, got 0.");
  EXPECT_NE(problem(R"({"promt": "a"})").find("no such key"), std::string::npos);
}

}  // namespace
}  // namespace easydel::test
