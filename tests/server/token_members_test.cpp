// What answers say about the tokens of prompt and answer, where it is asked for: the same streamed and whole.
#include <gtest/gtest.h>

#include "server/fake_engine.h"

namespace easydel::server {
namespace {

using test::FakeServer;

// The objects of the events of a stream.
std::vector<Value> events_of(const std::string& body) {
  std::vector<Value> out;
  for (size_t at = body.find("data: {"); at != std::string::npos; at = body.find("data: {", at + 1))
    out.push_back(parse_json(body.substr(at + 6, body.find('\n', at) - at - 6)));
  return out;
}

std::string member(const Value& object, const char* name) {
  const Value* const found = object.find(name);
  return found ? to_json(*found) : "(none)";
}

// Ids of the answer in all chunks.
std::string joined_ids(const std::vector<Value>& events) {
  Value out = Value::list();
  for (const Value& event : events)
    for (const Value& choice : event.find("choices")->items)
      if (const Value* const ids = choice.find("token_ids"); ids && ids->is_list())
        out.items.insert(out.items.end(), ids->items.begin(), ids->items.end());
  return to_json(out);
}

constexpr const char* asked = R"("temperature": 0, "return_token_ids": true, "prompt_logprobs": 2)";
constexpr const char* conversation = R"("messages": [{"role": "user", "content": "Hi"}])";

TEST(TokenMembers, AreInTheFirstChunkOfCompletionsAndChats) {
  FakeServer server;
  for (const auto& [path, body] : {std::pair("/v1/completions", std::string(R"("prompt": "The old", "max_tokens": 3)")),
                                   std::pair("/v1/chat/completions", std::string(conversation))}) {
    const bool chat = std::string(path).find("chat") != std::string::npos;
    const Value whole = server.post(path, "{" + body + ", " + asked + "}").json();
    const Value& of_whole = chat ? whole : whole.find("choices")->items[0];
    const std::vector<Value> events =
        events_of(server.post(path, "{" + body + ", " + asked + R"(, "stream": true})").body);
    ASSERT_GE(events.size(), 2u);
    const Value& of_first = chat ? events[0] : events[0].find("choices")->items[0];
    for (const char* name : {"prompt_token_ids", "prompt_logprobs"}) {
      EXPECT_NE(member(of_whole, name), "(none)") << path;
      EXPECT_EQ(member(of_first, name), member(of_whole, name)) << path << " " << name;
    }
    EXPECT_EQ(joined_ids(events), member(whole.find("choices")->items[0], "token_ids")) << path;
    for (size_t i = 1; i < events.size(); ++i)
      EXPECT_EQ(to_json(events[i]).find("prompt_"), std::string::npos) << path << to_json(events[i]);
  }
  const std::vector<Value> two =
      events_of(server
                    .post("/v1/chat/completions", std::string("{") + conversation +
                                                      R"(, "n": 2, "seed": 1, "stream": true, "prompt_logprobs": 0})")
                    .body);
  EXPECT_EQ(member(two[0], "prompt_logprobs"), member(two[1], "prompt_logprobs"));
  EXPECT_NE(member(two[0], "prompt_logprobs"), "(none)");
}

TEST(TokenMembers, AreInTheObjectsOfResponsesAndMessages) {
  FakeServer server;
  const Value chat =
      server.post("/v1/chat/completions", std::string("{") + conversation + R"(, "max_tokens": 200, )" + asked + "}")
          .json();
  const std::string answer_ids = member(chat.find("choices")->items[0], "token_ids");
  const auto expect_members = [&](const Value& object, const std::string& what) {
    for (const char* name : {"prompt_token_ids", "prompt_logprobs"})
      EXPECT_EQ(member(object, name), member(chat, name)) << what << name;
    EXPECT_EQ(member(object, "token_ids"), answer_ids) << what;
  };
  const std::string response = std::string(R"({"input": "Hi", "max_output_tokens": 200, "store": false, )") + asked;
  expect_members(server.post("/v1/responses", response + "}").json(), "response");
  expect_members(
      *events_of(server.post("/v1/responses", response + R"(, "stream": true})").body).back().find("response"),
      "streamed response");
  const std::string message = std::string("{") + conversation + R"(, "max_tokens": 200, )" + asked;
  expect_members(server.post("/v1/messages", message + "}").json(), "message");
  const std::vector<Value> events = events_of(server.post("/v1/messages", message + R"(, "stream": true})").body);
  expect_members(events[events.size() - 2], "streamed message");
  EXPECT_EQ(member(events[events.size() - 2], "type"), "\"message_delta\"");
  const Value plain = server.post("/v1/messages", std::string("{") + conversation + R"(, "max_tokens": 9})").json();
  for (const char* name : {"prompt_token_ids", "prompt_logprobs", "token_ids"})
    EXPECT_EQ(member(plain, name), "(none)");
}

}  // namespace
}  // namespace easydel::server
