// /v1/messages: what bodies ask for, and the message and its events byte for byte.
#include <gtest/gtest.h>

#include "easydel/server/messages_json.h"
#include "easydel/server/messages_request.h"
#include "server/read_request.h"
#include "server/stream_events.h"

namespace easydel::server {
namespace {

using test::read;
using test::wrong;

std::string message(const std::string& fields) {
  return R"({"max_tokens": 9, "messages": [{"role": "user", "content": "a"}])" + (fields.empty() ? "" : ", " + fields) +
         "}";
}

TEST(MessagesRequest, RefusesEverythingThatIsWrongAtOnce) {
  EXPECT_EQ(wrong<MessagesRequest>("{}"), "messages: is missing\nmax_tokens: is missing\n");
  EXPECT_EQ(wrong<MessagesRequest>(message(R"("max_tokens_": 1)"), true), "max_tokens_: no such key\n");
  EXPECT_EQ(wrong<MessagesFields>(R"({"messages": [{"role": "user", "content": "a"}]})"), "");
  EXPECT_EQ(wrong<MessagesRequest>(R"({"max_tokens": 9, "messages": [1, {"role": "system", "content": "a"},
              {"role": "user"}, {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url":
              "http://169.254.169.254/"}}, {"type": "tool_use"}, {"type": "tool_result", "content": [{"type": "text"}]}]},
              {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": "x"},
              {"type": "thinking"}, {"type": "redacted_thinking", "data": "x"}]}]})"),
            "messages[0]: '1' is not an object\n"
            "messages[1].role: 'system' is not user or assistant\nmessages[2].content: is required\n"
            "messages[3].content[0]: blocks of type 'image' are not supported here\n"
            "messages[3].content[1]: blocks of type 'tool_use' are not supported here\n"
            "messages[3].content[2].tool_use_id: is required\nmessages[3].content[2].content[0].text: is required\n"
            "messages[4].content[0].input: 'x' is not an object\nmessages[4].content[1].thinking: is required\n");
  EXPECT_EQ(wrong<MessagesRequest>(message(R"("tools": [{"type": "bash_20250124", "name": "bash"}, {"name": "f"}])")),
            "tools[0]: tools of type 'bash_20250124' are not supported\ntools[1].input_schema: is required\n");
  EXPECT_EQ(wrong<MessagesRequest>(message(R"("tool_choice": {"type": "any"})")),
            "tool_choice: a call is required, but there are no tools\n");
  EXPECT_EQ(wrong<MessagesRequest>(message(R"("tool_choice": "auto", "thinking": {"type": "on", "budget_tokens": 0})")),
            "tool_choice: is not an object with type auto, any, none or tool\n"
            "thinking.type: 'on' is not enabled, adaptive or disabled\n"
            "thinking.budget_tokens: '0' is not a positive integer\n");
  EXPECT_EQ(wrong<MessagesRequest>(message(R"("stop_sequences": ["a", ""])")), "stop_sequences[1]: is empty\n");
  EXPECT_EQ(wrong<MessagesRequest>(message(R"("best_of": 3)")), "best_of: this route gives one answer\n");
}

TEST(MessagesRequest, BecomesAChat) {
  const ChatRequest chat = chat_request_of(read<MessagesRequest>(
      R"({"model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
          "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "x"},
              {"type": "text", "text": "c"}, {"type": "tool_use", "id": "u", "name": "f", "input": {"x": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u", "content": "r"},
              {"type": "text", "text": "d"}]}],
          "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
          "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true},
          "thinking": {"type": "enabled", "budget_tokens": 5}, "stop_sequences": ["x"], "top_k": 3,
          "output_config": {"format": {"type": "json_schema", "schema": {"type": "null"}}}})"));
  const auto expected = [](const char* json) { return to_json(read_value(json).entries[0].second); };
  EXPECT_EQ(to_json(chat.conversation.messages), expected(R"({"m": [{"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": "c", "reasoning_content": "t", "tool_calls": [{"id": "u", "type": "function",
     "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
    {"role": "tool", "tool_call_id": "u", "content": "r"}, {"role": "user", "content": "d"}]})"));
  EXPECT_EQ(to_json(chat.conversation.tools), expected(R"({"t": [{"type": "function", "function": {"name": "f",
    "description": "d", "parameters": {"type": "object"}}}]})"));
  EXPECT_EQ(to_json(chat.chat.tool_choice), R"({"type": "function", "function": {"name": "f"}})");
  EXPECT_EQ(to_json(chat.chat.response_format),
            R"({"type": "json_schema", "json_schema": {"schema": {"type": "null"}}})");
  EXPECT_EQ(chat.chat.parallel_tool_calls, false);
  EXPECT_EQ(chat.conversation.enable_thinking, true);
  EXPECT_EQ(chat.chat.thinking_budget, 5);
  EXPECT_EQ(chat.max_tokens(), 9);
  EXPECT_EQ(chat.generation.stop->at(0), "x");
  EXPECT_EQ(chat.generation.top_k, 3);
  EXPECT_EQ(chat.generation.model, "m");
  EXPECT_EQ(chat.conversation.continue_final_message, std::nullopt);
  EXPECT_EQ(chat_request_of(read<MessagesFields>(R"({"messages": [{"role": "assistant", "content": "a"}]})"))
                .conversation.continue_final_message,
            true);
}

const TokenUsage usage{.prompt_tokens = 7, .completion_tokens = 4, .cached_tokens = 2};
const std::string usage_text =
    R"({"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":2,"output_tokens":4,"service_tier":"standard"})";

TEST(MessageWriter, WritesAStreamByteForByte) {
  MessageWriter writer("msg_1", "m");
  std::string stream = writer.begin({.prompt_tokens = 7, .cached_tokens = 2});
  for (const ChatPiece& piece :
       std::vector<ChatPiece>{{.reasoning_content = "t"},
                              {.content = "a\n"},
                              {.content = "b"},
                              {.tool_calls = {{0, "call_1", "f", ""}, {0, "", "", "{\"x\": "}}},
                              {.tool_calls = {{0, "", "", "1}"}, {1, "call_2", "g", "{}"}}},
                              {.finish_reason = "tool_calls"}})
    stream += writer.piece(piece);
  stream += writer.end(usage);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"message_start", R"("message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],)"
                        R"("stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,)"
                        R"("cache_creation_input_tokens":0,"cache_read_input_tokens":2,"output_tokens":0,)"
                        R"("service_tier":"standard"}})"},
      {"ping", ""},
      {"content_block_start", R"("index":0,"content_block":{"type":"thinking","thinking":"","signature":""})"},
      {"content_block_delta", R"("index":0,"delta":{"type":"thinking_delta","thinking":"t"})"},
      {"content_block_stop", R"("index":0)"},
      {"content_block_start", R"("index":1,"content_block":{"type":"text","text":""})"},
      {"content_block_delta", R"("index":1,"delta":{"type":"text_delta","text":"a\n"})"},
      {"content_block_delta", R"("index":1,"delta":{"type":"text_delta","text":"b"})"},
      {"content_block_stop", R"("index":1)"},
      {"content_block_start", R"("index":2,"content_block":{"type":"tool_use","id":"call_1","name":"f","input":{}})"},
      {"content_block_delta", R"("index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\": "})"},
      {"content_block_delta", R"("index":2,"delta":{"type":"input_json_delta","partial_json":"1}"})"},
      {"content_block_stop", R"("index":2)"},
      {"content_block_start", R"("index":3,"content_block":{"type":"tool_use","id":"call_2","name":"g","input":{}})"},
      {"content_block_delta", R"("index":3,"delta":{"type":"input_json_delta","partial_json":"{}"})"},
      {"content_block_stop", R"("index":3)"},
      {"message_delta", R"("delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":)" + usage_text},
      {"message_stop", ""}};
  std::string bytes;
  for (const auto& [name, members] : expected)
    bytes += "event: " + name + "\ndata: {\"type\":\"" + name + "\"" + (members.empty() ? "" : "," + members) + "}\n\n";
  EXPECT_EQ(stream, bytes);
  EXPECT_EQ(
      writer.object(),
      R"({"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking",)"
      R"("thinking":"t","signature":""},{"type":"text","text":"a\nb"},{"type":"tool_use","id":"call_1","name":"f",)"
      R"("input":{"x": 1}},{"type":"tool_use","id":"call_2","name":"g","input":{}}],"stop_reason":"tool_use",)"
      R"("stop_sequence":null,"usage":)" +
          usage_text + "}");
}

TEST(MessageWriter, SaysHowAnAnswerEnded) {
  const auto ended = [](const ChatPiece& piece, const char* member) {
    MessageWriter writer("msg_1", "m");
    writer.piece(piece);
    writer.end(usage);
    return test::member_of(writer.object(), {member});
  };
  EXPECT_EQ(ended({.finish_reason = "stop"}, "stop_reason"), "end_turn");
  EXPECT_EQ(ended({.finish_reason = "length"}, "stop_reason"), "max_tokens");
  EXPECT_EQ(ended({.finish_reason = "stop", .stop = "\"x"}, "stop_reason"), "stop_sequence");
  EXPECT_EQ(ended({.finish_reason = "stop", .stop = "\"x"}, "stop_sequence"), "\"x");
  EXPECT_EQ(ended({.finish_reason = "stop"}, "stop_sequence"), "null");
  // Arguments that were cut are no object.
  MessageWriter cut("msg_1", "m");
  cut.piece({.tool_calls = {{0, "call_1", "f", "{\"x\""}}, .finish_reason = "length"});
  EXPECT_EQ(test::member_of(cut.object(), {"content", "0", "input"}), "{}");
  EXPECT_EQ(cut.fail({.status = 503, .message = "Busy."}, "req_1"),
            "event: error\ndata: {\"type\": \"error\", \"error\": {\"type\": \"overloaded_error\", \"message\": "
            "\"Busy.\"}, \"request_id\": \"req_1\"}\n\n");
}

}  // namespace
}  // namespace easydel::server
