// Exact bytes of answers and events.
#include "easydel/server/completion_json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "easydel/base/document.h"

namespace easydel::server {
namespace {

const CompletionHead chat_head{.id = "chatcmpl-1", .created = 7, .model = "m", .system_fingerprint = "fp"};
const CompletionHead text_head{.id = "cmpl-1", .created = 7, .model = "m", .system_fingerprint = ""};
const TokenUsage usage{
    .prompt_tokens = 3, .completion_tokens = 2, .cached_tokens = 1, .tokens_per_second = 0.5, .processing_time = 4};
const std::string usage_text =
    R"({"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":1,)"
    R"("truncated_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"accepted_prediction_tokens":0,)"
    R"("rejected_prediction_tokens":0},"tokens_per_second":0.5,"processing_time":4.0})";

// One event of the chat whose choices are given.
std::string chat_event(const std::string& choices, const std::string& more = "") {
  return R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","system_fingerprint":"fp",)"
         R"("choices":[)" +
         choices + "]" + more + "}\n\n";
}

TEST(CompletionStream, WritesAChatByteForByte) {
  const CompletionStream stream(CompletionStream::Kind::chat, chat_head, false, false, false);
  EXPECT_EQ(stream.begin(1), chat_event(R"({"index":1,"delta":{"role":"assistant","content":""},"logprobs":null,)"
                                        R"("finish_reason":null})"));
  EXPECT_EQ(stream.piece(ChatPiece{.index = 1, .content = "a\n\"\xc3\xa9"}, usage),
            chat_event(
                "{\"index\":1,\"delta\":{\"content\":\"a\\n\\\"\xc3\xa9\"},\"logprobs\":null,\"finish_reason\":null}"));
  EXPECT_EQ(stream.piece(ChatPiece{.reasoning_content = "hm", .finish_reason = "length"}, usage),
            chat_event(R"({"index":0,"delta":{"reasoning_content":"hm"},"logprobs":null,"finish_reason":null})") +
                chat_event(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"length"})"));
  EXPECT_EQ(stream.piece(ChatPiece{.finish_reason = "stop"}, usage),
            chat_event(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"})"));
  EXPECT_EQ(stream.piece(ChatPiece{}, usage), "");
  EXPECT_EQ(stream.end(usage), "data: [DONE]\n\n");
}

TEST(CompletionStream, WritesToolCalls) {
  const CompletionStream stream(CompletionStream::Kind::chat, chat_head, false, false, false);
  EXPECT_EQ(stream.piece(ChatPiece{.tool_calls = {{.index = 0, .id = "call_1", .name = "f", .arguments = ""}}}, usage),
            chat_event(R"({"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":)"
                       R"({"name":"f","arguments":""}}]},"logprobs":null,"finish_reason":null})"));
  EXPECT_EQ(stream.piece(ChatPiece{.tool_calls = {{.index = 0, .id = "", .name = "", .arguments = "{\"a\""}}}, usage),
            chat_event(R"({"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]},)"
                       R"("logprobs":null,"finish_reason":null})"));
}

TEST(CompletionStream, ShowsTheUsage) {
  const CompletionStream last(CompletionStream::Kind::chat, chat_head, false, true, false);
  const std::string delta = R"({"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null})";
  EXPECT_EQ(last.piece(ChatPiece{.content = "a"}, usage), chat_event(delta, R"(,"usage":null)"));
  EXPECT_EQ(last.end(usage), chat_event("", ",\"usage\":" + usage_text) + "data: [DONE]\n\n");
  const CompletionStream always(CompletionStream::Kind::chat, chat_head, false, true, true);
  EXPECT_EQ(always.piece(ChatPiece{.content = "a"}, usage), chat_event(delta, ",\"usage\":" + usage_text));
  EXPECT_NE(always.begin(0).find("\"usage\":null"), std::string::npos);
}

TEST(CompletionStream, EndsWithAnError) {
  const CompletionStream stream(CompletionStream::Kind::chat, chat_head, false, false, false);
  EXPECT_EQ(stream.fail({.status = 504, .message = "Too late.", .code = "deadline"}, "/v1/chat/completions", "r"),
            "data: {\"error\": {\"message\": \"Too late.\", \"type\": \"server_error\", \"param\": null, \"code\": "
            "\"deadline\"}}\n\ndata: [DONE]\n\n");
}

TEST(CompletionStream, WritesLogprobs) {
  const CompletionStream stream(CompletionStream::Kind::chat, chat_head, true, false, false);
  const LogprobEntry half{.token = "\xef\xbf\xbd", .bytes = "\xc3", .logprob = -0.1f};
  const LogprobEntry other{.token = "b", .bytes = "b", .logprob = -INFINITY};
  EXPECT_EQ(
      stream.piece(ChatPiece{.content = "x", .logprobs = {{half, {half, other}}}}, usage),
      chat_event("{\"index\":0,\"delta\":{\"content\":\"x\"},\"logprobs\":{\"content\":[{\"token\":\"\xef\xbf\xbd\","
                 "\"logprob\":-0.1,\"bytes\":[195],\"top_logprobs\":[{\"token\":\"\xef\xbf\xbd\",\"logprob\":-0.1,"
                 "\"bytes\":[195]},{\"token\":\"b\",\"logprob\":-9999.0,\"bytes\":[98]}]}],\"refusal\":null},"
                 "\"finish_reason\":null}"));
  // An end token has a log-prob and no text.
  EXPECT_EQ(stream.piece(ChatPiece{.logprobs = {{other, {}}}, .finish_reason = "stop"}, usage),
            chat_event(R"({"index":0,"delta":{},"logprobs":{"content":[{"token":"b","logprob":-9999.0,"bytes":[98],)"
                       R"("top_logprobs":[]}],"refusal":null},"finish_reason":null})") +
                chat_event(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"})"));
}

TEST(CompletionStream, WritesCompletions) {
  const CompletionStream stream(CompletionStream::Kind::text, text_head, true, false, false);
  const std::string head =
      R"(data: {"id":"cmpl-1","object":"text_completion","created":7,"model":"m","system_fingerprint":null,"choices":[)";
  EXPECT_EQ(stream.piece(
                TextPiece{.index = 2,
                          .text = "ab",
                          .tokens = {{"a", std::nullopt, {}, 0}, {"b", -0.25f, {{"b", -0.25f}, {"token_id:7", -2}}, 1}},
                          .has_logprobs = true,
                          .finish_reason = "length"},
                usage),
            head +
                R"({"index":2,"text":"ab","logprobs":{"tokens":["a","b"],"token_logprobs":[null,-0.25],)"
                R"("top_logprobs":[null,{"b":-0.25,"token_id:7":-2}],"text_offset":[0,1]},)"
                R"("finish_reason":"length"}]})" +
                "\n\n");
  EXPECT_EQ(stream.piece(TextPiece{.text = "c"}, usage),
            head + R"({"index":0,"text":"c","logprobs":null,"finish_reason":null}]})" + "\n\n");
}

TEST(Completions, AreWrittenWhole) {
  EXPECT_EQ(
      chat_completion(chat_head,
                      {{.content = "a", .reasoning_content = "r", .finish_reason = "stop"},
                       {.index = 1, .tool_calls = {{0, "call_1", "f", "{}"}}, .finish_reason = "tool_calls"},
                       {.index = 2, .finish_reason = "length"}},
                      false, usage),
      R"({"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m","system_fingerprint":"fp","choices":[)"
      R"({"index":0,"message":{"role":"assistant","content":"a","refusal":null,"reasoning_content":"r"},)"
      R"("logprobs":null,"finish_reason":"stop"},)"
      R"({"index":1,"message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"call_1",)"
      R"("type":"function","function":{"name":"f","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"},)"
      R"({"index":2,"message":{"role":"assistant","content":"","refusal":null},"logprobs":null,)"
      R"("finish_reason":"length"}],"usage":)" +
          usage_text + "}");
  EXPECT_EQ(text_completion(text_head, {{.text = "a", .finish_reason = "stop"}}, usage),
            R"({"id":"cmpl-1","object":"text_completion","created":7,"model":"m","system_fingerprint":null,"choices":[)"
            R"({"index":0,"text":"a","logprobs":null,"finish_reason":"stop"}],"usage":)" +
                usage_text + "}");
}

TEST(LogprobText, ReadsBackAsTheSameFloat) {
  for (const float value : {-0.1f, -1.17549435e-38f, -12.345678f, 0.0f, -3.4028235e38f})
    EXPECT_EQ(std::stof(logprob_text(value)), value);
  EXPECT_EQ(logprob_text(-INFINITY), "-9999.0");
  EXPECT_EQ(new_completion_id("cmpl-").size(), 29u);
  EXPECT_NE(new_completion_id("cmpl-"), new_completion_id("cmpl-"));
}

}  // namespace
}  // namespace easydel::server
