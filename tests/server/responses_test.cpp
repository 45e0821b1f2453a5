// /v1/responses: what bodies ask for, the object and its events byte for byte, and what is stored.
#include <gtest/gtest.h>

#include "easydel/server/response_store.h"
#include "easydel/server/responses_json.h"
#include "server/read_request.h"
#include "server/stream_events.h"

namespace easydel::server {
namespace {

using test::read;
using test::wrong;

std::string responses(const std::string& fields) { return R"({"input": "a", )" + fields + "}"; }

std::string messages_of(const std::string& items) {
  return to_json(messages_of_items(read_value("{\"i\":" + items + "}").entries[0].second));
}

TEST(ResponsesRequest, RefusesEverythingThatIsWrongAtOnce) {
  EXPECT_EQ(wrong<ResponsesRequest>("{}"), "input: is missing\n");
  EXPECT_EQ(wrong<ResponsesRequest>(R"({"input": 1})"), "input: '1' is not a text or a list of items\n");
  EXPECT_EQ(wrong<ResponsesRequest>(R"({"input": []})"), "input: is empty\n");
  EXPECT_EQ(wrong<ResponsesRequest>(R"({"input": [1, {}, {"role": "tool", "content": "a"}, {"role": "user"},
              {"type": "item_reference", "id": "x"}, {"type": "function_call", "name": "f"},
              {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image"}]},
              {"role": "user", "content": [{"type": "input_file", "file_url": "http://127.0.0.1/"}, {"type": "input_text"}]}]})"),
            "input[0]: '1' is not an object\ninput[1].type: is required\ninput[2].role: 'tool' is not a role\n"
            "input[3].content: is required\ninput[4]: items of type 'item_reference' are not supported\n"
            "input[5].call_id: is required\ninput[5].arguments: is required\n"
            "input[6].output[0]: parts of type 'input_image' are not supported\n"
            "input[7].content[0]: parts of type 'input_file' are not supported\n"
            "input[7].content[1].text: is required\n");
  EXPECT_EQ(wrong<ResponsesRequest>(responses(R"("tools": [{"type": "web_search"}, {"type": "function"}, {}])")),
            "tools[0]: tools of type 'web_search' are not supported\ntools[1].name: is required\n"
            "tools[2].type: is required\n");
  EXPECT_EQ(wrong<ResponsesRequest>(responses(R"("tool_choice": {"type": "function", "name": "f"})")),
            "tool_choice: 'f' is not one of the tools\n");
  EXPECT_EQ(wrong<ResponsesRequest>(responses(R"("background": true, "truncation": "x", "prompt": {"id": "p"})")),
            "background: answering in the background is not supported\ntruncation: 'x' is not auto or disabled\n"
            "prompt: stored prompts are not supported\n");
  EXPECT_EQ(
      wrong<ResponsesRequest>(responses(R"("text": {"format": {"type": "xml"}}, "reasoning": {"effort": "max"})")),
      "text.format.type: 'xml' is not text, json_object or json_schema\n"
      "reasoning.effort: 'max' is not none, minimal, low, medium, high or xhigh\n");
  EXPECT_EQ(wrong<ResponsesRequest>(responses(R"("text": {"format": {"type": "json_schema"}})")),
            "text.format.schema: is required\n");
  EXPECT_EQ(wrong<ResponsesRequest>(responses(R"("previous_response_id": "a", "conversation": "b")")),
            "previous_response_id: and conversation exclude each other\n");
  EXPECT_EQ(wrong<ResponsesRequest>(responses(R"("n": 2)")), "n: this route gives one answer\n");
}

TEST(ResponsesRequest, BecomesAChat) {
  const ChatRequest chat = chat_request_of(
      read<ResponsesRequest>(responses(
          R"("instructions": "i", "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"},
             "strict": true}], "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function",
             "name": "f"}]}, "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "null"}}},
             "reasoning": {"effort": "low"}, "max_output_tokens": 7, "temperature": 0.5, "seed": 3, "top_logprobs": 2,
             "parallel_tool_calls": false)")),
      read_value(R"({"h": [{"role": "user", "content": "b"}]})").entries[0].second);
  EXPECT_EQ(to_json(chat.conversation.messages),
            to_json(read_value(R"({"m": [{"role": "system", "content": "i"}, {"role": "user", "content": "b"},
                                {"role": "user", "content": "a"}]})")
                        .entries[0]
                        .second));
  EXPECT_EQ(
      to_json(chat.conversation.tools),
      to_json(read_value(R"({"t": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"},
                                "strict": true}}]})")
                  .entries[0]
                  .second));
  EXPECT_EQ(to_json(chat.chat.tool_choice),
            to_json(read_value(R"({"type": "allowed_tools", "allowed_tools": {"mode": "required",
                                "tools": [{"type": "function", "function": {"name": "f"}}]}})")));
  EXPECT_EQ(
      to_json(chat.chat.response_format),
      to_json(read_value(R"({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "null"}}})")));
  EXPECT_EQ(chat.conversation.reasoning_effort, "low");
  EXPECT_EQ(chat.max_tokens(), 7);
  EXPECT_EQ(chat.generation.seed, 3);
  EXPECT_EQ(chat.chat.logprobs, true);
  EXPECT_EQ(chat.chat.top_logprobs, 2);
  EXPECT_EQ(chat.chat.parallel_tool_calls, false);
  EXPECT_EQ(chat_request_of(read<ResponsesRequest>(responses(R"("reasoning": {"effort": "none"})")), Value::list())
                .conversation.enable_thinking,
            false);
}

TEST(ResponsesRequest, ReadsATurnOfItemsAsOneMessage) {
  EXPECT_EQ(messages_of(R"([{"role": "user", "content": [{"type": "input_text", "text": "q"}]},
              {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "r"}]},
              {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
              {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
              {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{\"x\": 1}"},
              {"type": "function_call_output", "call_id": "c1", "output": "1"},
              {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
              {"type": "message", "role": "assistant", "content": "c"}])"),
            to_json(read_value(R"({"m": [{"role": "user", "content": "q"},
              {"role": "assistant", "reasoning_content": "r", "content": "a", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{\"x\": 1}"}}]},
              {"role": "tool", "tool_call_id": "c1", "content": "1"},
              {"role": "assistant", "content": "b"}, {"role": "assistant", "content": "c"}]})")
                        .entries[0]
                        .second));
  EXPECT_EQ(messages_of(R"([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}])"),
            to_json(read_value(R"({"m": [{"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
                                "function": {"name": "f", "arguments": "{}"}}], "content": ""}]})")
                        .entries[0]
                        .second));
}

ResponseWriter writer_of(const std::string& body, bool logprobs = false) {
  ResponseHead head = response_head(read<ResponsesRequest>(body), "m", 5, true, {.temperature = 1, .top_p = 1});
  head.id = "resp_1";
  return ResponseWriter(head, logprobs);
}
const TokenUsage usage{.prompt_tokens = 3, .completion_tokens = 2, .cached_tokens = 1, .reasoning_tokens = 1};

TEST(ResponseWriter, WritesTheWholeObject) {
  ResponseWriter writer =
      writer_of(R"({"input": "a", "metadata": {"k": "v"}, "tools": [{"type": "function", "name": "f"}]})");
  writer.piece({.content = "hé"});
  writer.piece({.finish_reason = "stop"});
  writer.end(usage, 9);
  const std::string object = writer.object();
  const std::string id = test::member_of(object, {"output", "0", "id"});
  EXPECT_EQ(id.substr(0, 4), "msg_");
  EXPECT_EQ(object,
            R"({"id":"resp_1","object":"response","created_at":5,"completed_at":9,"status":"completed","error":null,)"
            R"("incomplete_details":null,"background":false,"instructions":null,"max_output_tokens":null,)"
            R"("max_tool_calls":null,"model":"m","parallel_tool_calls":true,"previous_response_id":null,)"
            R"("conversation":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},)"
            R"("safety_identifier":null,"service_tier":"default","store":true,"temperature":1.0,)"
            R"("text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[{"type":"function","name":"f",)"
            R"("description":null,"parameters":null,"strict":false}],"top_logprobs":0,"top_p":1.0,)"
            R"("presence_penalty":0.0,"frequency_penalty":0.0,"truncation":"disabled","user":null,)"
            R"("metadata":{"k": "v"},"output":[{"id":")" +
                id +
                R"(","status":"completed","type":"message","role":"assistant","content":[{"type":"output_text",)"
                R"("text":"hé","annotations":[],"logprobs":[]}]}],"usage":{"input_tokens":3,)"
                R"("input_tokens_details":{"cache_write_tokens":0,"cached_tokens":1},"output_tokens":2,)"
                R"("output_tokens_details":{"reasoning_tokens":1},"total_tokens":5}})");
}

// What a client puts together from the events.
struct Heard {
  std::vector<std::string> types, texts;  // texts: of items, in their order
  std::string last;                       // the response of the last event
};
Heard hear(const std::string& stream) {
  Heard out;
  int64_t number = 0;
  for (const test::StreamEvent& event : test::events_of(stream)) {
    EXPECT_EQ(event.name, test::member_of(event.data, {"type"}));
    EXPECT_EQ(test::member_of(event.data, {"sequence_number"}), std::to_string(number++));
    out.types.push_back(event.name);
    if (event.name == "response.output_item.added") out.texts.emplace_back();
    if (event.name.ends_with(".delta"))
      out.texts.at(size_t(std::stoi(test::member_of(event.data, {"output_index"})))) +=
          test::member_of(event.data, {"delta"});
    if (event.name.ends_with("_text.done")) {
      EXPECT_EQ(out.texts.back(), test::member_of(event.data, {"text"}));
    }
    if (event.data.find("\"response\":") != std::string::npos) out.last = test::member_of(event.data, {"response"});
  }
  return out;
}

TEST(ResponseWriter, StreamsEveryKindOfItem) {
  ResponseWriter writer = writer_of(R"({"input": "a"})");
  std::string stream = writer.begin();
  for (const ChatPiece& piece :
       std::vector<ChatPiece>{{.reasoning_content = "r1"},
                              {.reasoning_content = "r2"},
                              {.content = "a"},
                              {.content = "b", .tool_calls = {{0, "call_1", "f", ""}, {0, "", "", "{\"x\""}}},
                              {.tool_calls = {{0, "", "", ": 1}"}, {1, "call_2", "g", "{}"}}},
                              {.finish_reason = "tool_calls"}})
    stream += writer.piece(piece);
  stream += writer.end(usage, 9);
  const Heard heard = hear(stream);
  EXPECT_EQ(heard.types, (std::vector<std::string>{"response.created",
                                                   "response.in_progress",
                                                   "response.output_item.added",
                                                   "response.content_part.added",
                                                   "response.reasoning_text.delta",
                                                   "response.reasoning_text.delta",
                                                   "response.reasoning_text.done",
                                                   "response.content_part.done",
                                                   "response.output_item.done",
                                                   "response.output_item.added",
                                                   "response.content_part.added",
                                                   "response.output_text.delta",
                                                   "response.output_text.delta",
                                                   "response.output_text.done",
                                                   "response.content_part.done",
                                                   "response.output_item.done",
                                                   "response.output_item.added",
                                                   "response.function_call_arguments.delta",
                                                   "response.function_call_arguments.delta",
                                                   "response.function_call_arguments.done",
                                                   "response.output_item.done",
                                                   "response.output_item.added",
                                                   "response.function_call_arguments.delta",
                                                   "response.function_call_arguments.done",
                                                   "response.output_item.done",
                                                   "response.completed"}));
  EXPECT_EQ(heard.texts, (std::vector<std::string>{"r1r2", "ab", "{\"x\": 1}", "{}"}));
  EXPECT_EQ(parse_json(heard.last), parse_json(writer.object()));
  // What comes out goes in again as one message of the assistant.
  EXPECT_EQ(
      messages_of(writer.output()),
      to_json(read_value(R"({"m": [{"role": "assistant", "reasoning_content": "r1r2", "content": "ab", "tool_calls": [
              {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}},
              {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]}]})")
                  .entries[0]
                  .second));
}

TEST(ResponseWriter, SaysHowAnAnswerEnded) {
  ResponseWriter cut = writer_of(R"({"input": "a"})");
  std::string events = cut.begin();
  events += cut.piece({.content = "a", .finish_reason = "length"});
  EXPECT_EQ(hear(events + cut.end(usage, 9)).types.back(), "response.incomplete");
  EXPECT_EQ(test::member_of(cut.object(), {"incomplete_details", "reason"}), "max_output_tokens");
  EXPECT_EQ(test::member_of(cut.object(), {"output", "0", "status"}), "incomplete");
  EXPECT_EQ(test::member_of(cut.object(), {"completed_at"}), "null");
  ResponseWriter failed = writer_of(R"({"input": "a"})");
  std::string stream = failed.begin();
  stream += failed.piece({.content = "a"});
  stream += failed.fail({.status = 504, .message = "Too late.", .code = "deadline"});
  const Heard heard = hear(stream);
  EXPECT_EQ(heard.types[heard.types.size() - 2], "error");
  EXPECT_EQ(heard.types.back(), "response.failed");
  EXPECT_EQ(test::member_of(heard.last, {"error", "code"}), "deadline");
  ResponseWriter cancelled = writer_of(R"({"input": "a"})");
  cancelled.piece({.content = "a"});
  cancelled.fail({}, true);
  EXPECT_EQ(test::member_of(cancelled.object(), {"status"}), "cancelled");
  EXPECT_EQ(test::member_of(cancelled.object(), {"error"}), "null");
  EXPECT_EQ(test::member_of(cancelled.object(), {"output", "0", "content", "0", "text"}), "a");
  ResponseWriter empty = writer_of(R"({"input": "a"})");
  empty.end(usage, 9);
  EXPECT_EQ(test::member_of(empty.object(), {"output", "0", "content", "0", "text"}), "");
}

TEST(ResponseWriter, WritesLogprobs) {
  ResponseWriter writer = writer_of(R"({"input": "a", "top_logprobs": 1})", true);
  const LogprobEntry a{.token = "a", .bytes = "a", .logprob = -0.5f}, end{.token = "", .bytes = "", .logprob = -1};
  std::string stream = writer.piece({.content = "a", .logprobs = {{a, {a}}}});
  stream += writer.piece({.logprobs = {{end, {}}}, .finish_reason = "stop"});
  EXPECT_NE(stream.find(R"("delta":"a","logprobs":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[)"
                        R"({"token":"a","logprob":-0.5,"bytes":[97]}]}])"),
            std::string::npos)
      << stream;
  writer.end(usage, 9);
  EXPECT_EQ(test::member_of(writer.object(), {"output", "0", "content", "0", "logprobs", "1", "logprob"}), "-1");
}

StoredResponse stored(const std::string& id, const std::string& previous = "", const std::string& owner = "") {
  return {.id = id,
          .owner = owner,
          .object = "{\"id\":\"" + id + "\"}",
          .previous = previous,
          .input = R"([{"type":"message","role":"user","content":"q )" + id + R"(","id":"i_)" + id + "\"}]",
          .output = R"([{"type":"message","role":"assistant","content":"a )" + id + "\"}]"};
}

TEST(ResponseStore, GoesOnAfterAResponse) {
  ResponseStore store;
  store.put(stored("r1"));
  store.put(stored("r2", "r1"));
  const Value history = store.history("r2", "");
  ASSERT_EQ(history.items.size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(history.items[i].find("content")->scalar, (std::vector<std::string>{"q r1", "a r1", "q r2", "a r2"})[i]);
  EXPECT_TRUE(store.erase("r1", ""));
  EXPECT_FALSE(store.erase("r1", ""));
  try {
    store.history("r2", "");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "previous_response_id: 'r2' goes on after 'r1', which is not stored any more\n"
                 "    send the conversation as input");
  }
}

TEST(ResponseStore, BelongsToTheKey) {
  ResponseStore store;
  store.put(stored("r1", "", "key_a"));
  EXPECT_TRUE(store.find("r1", "key_a"));
  EXPECT_FALSE(store.find("r1", "key_b"));
  EXPECT_FALSE(store.erase("r1", "key_b"));
  EXPECT_FALSE(store.cancel("r1", "key_b"));
  EXPECT_THROW(store.history("r1", "key_b"), UserError);
  StoredResponse in_conversation = stored("r2", "", "key_a");
  in_conversation.conversation = "c";
  store.put(in_conversation);
  EXPECT_EQ(store.conversation("c", "key_a").items.size(), 2u);
  EXPECT_EQ(store.conversation("c", "key_b").items.size(), 0u);
}

TEST(ResponseStore, IsBounded) {
  ResponseStore store({.responses = 2, .conversations = 1, .bytes = 10000});
  store.put(stored("r1"));
  store.put(stored("r2"));
  EXPECT_TRUE(store.find("r1", ""));  // used last
  store.put(stored("r3"));
  EXPECT_TRUE(store.find("r1", ""));
  EXPECT_FALSE(store.find("r2", ""));
  for (const char* name : {"c1", "c2"}) {
    StoredResponse next = stored(name);
    next.conversation = name;
    store.put(next);
  }
  EXPECT_EQ(store.conversation("c1", "").items.size(), 0u);
  EXPECT_EQ(store.conversation("c2", "").items.size(), 2u);
  StoredResponse large = stored("large");
  large.output = "[\"" + std::string(20000, 'x') + "\"]";
  store.put(large);
  EXPECT_FALSE(store.find("large", ""));
  EXPECT_EQ(store.size(), 2u);
  const size_t bytes = store.bytes();
  store.put(stored("c2"));
  EXPECT_LT(store.bytes(), bytes + 10) << "one of the same id is replaced";
}

TEST(ResponseStore, CancelsWhatIsBeingMade) {
  ResponseStore store;
  int aborted = 0;
  store.begin(stored("r1"), [&] { ++aborted; });
  EXPECT_THROW(store.history("r1", ""), UserError);
  EXPECT_TRUE(store.cancel("r1", ""));
  EXPECT_EQ(aborted, 1);
  store.put(stored("r1"), true);
  EXPECT_TRUE(store.cancel("r1", ""));
  EXPECT_EQ(aborted, 1);
  store.erase("r1", "");
  store.put(stored("r1"), true);  // deleted while it was made
  EXPECT_FALSE(store.find("r1", ""));
}

TEST(InputItems, ArePaged) {
  StoredResponse response = stored("r");
  response.input = items_with_ids(read_value(R"({"i": [{"role": "user", "content": "a", "id": "1"},
    {"type": "function_call_output", "call_id": "c", "output": "x"}, {"role": "user", "content": "b", "id": "3"}]})")
                                      .entries[0]
                                      .second);
  const std::string page = input_items_page(response, 2, false, "");
  EXPECT_EQ(test::member_of(page, {"first_id"}), "3");
  EXPECT_EQ(test::member_of(page, {"last_id"}).substr(0, 4), "fco_");
  EXPECT_EQ(test::member_of(page, {"has_more"}), "true");
  EXPECT_EQ(
      input_items_page(response, 2, false, test::member_of(page, {"last_id"})),
      R"({"object":"list","data":[{"role": "user", "content": "a", "id": "1", "type": "message"}],"first_id":"1",)"
      R"("last_id":"1","has_more":false})");
  EXPECT_EQ(test::member_of(input_items_page(response, 1, true, ""), {"first_id"}), "1");
  EXPECT_THROW(input_items_page(response, 1, true, "2"), UserError);
}

}  // namespace
}  // namespace easydel::server
