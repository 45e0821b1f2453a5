// Chats and completions over a fake engine: streamed and whole answers, alone and beside others, and clients that
// leave.
#include <gtest/gtest.h>

#include <random>

#include "easydel/base/json_text.h"
#include "server/fake_engine.h"

namespace easydel::server {
namespace {

using test::FakeServer;
using test::RawClient;
using test::Reply;

constexpr const char* chat_path = "/v1/chat/completions";
constexpr const char* text_path = "/v1/completions";

std::vector<text::TokenId> tokens_of(const std::string& text) {
  return test::story_tokenizer()->encode(text, {.add_special_tokens = false, .parse_special = false});
}

void append_text(Value& map, const char* name, const Value* more) {
  if (!more || more->is_null()) return;
  Value* const known = map.find(name);
  if (known && !known->is_null())
    known->scalar += more->scalar;
  else
    map.set(name, *more);
}

void append_list(Value& map, const char* name, const Value* more) {
  if (!more || !more->is_list()) return;
  Value* const known = map.find(name);
  if (!known) return (void)map.set(name, *more);
  known->items.insert(known->items.end(), more->items.begin(), more->items.end());
}

void append_calls(Value& message, const Value* more) {
  if (!more) return;
  if (!message.find("tool_calls")) message.set("tool_calls", Value::list());
  std::vector<Value>& calls = message.find("tool_calls")->items;
  for (const Value& piece : more->items) {
    const size_t index = size_t(*piece.find("index")->as_int());
    if (index == calls.size()) {
      Value call = Value::map(), function = Value::map();
      EXPECT_EQ(piece.find("type")->scalar, "function");
      EXPECT_TRUE(piece.find("id")->scalar.starts_with("call_"));
      function.set("name", *piece.find("function")->find("name"));
      function.set("arguments", *piece.find("function")->find("arguments"));
      call.set("type", *piece.find("type"));
      call.set("function", std::move(function));
      calls.push_back(std::move(call));
      continue;
    }
    EXPECT_LT(index, calls.size());
    append_text(*calls[index].find("function"), "arguments", piece.find("function")->find("arguments"));
  }
}

// The choices that the events of a stream add up to, in the form of a whole answer.
Value summed(const std::vector<Value>& events, bool chat) {
  std::map<int64_t, Value> choices;
  for (const Value& event : events)
    for (const Value& piece : event.find("choices")->items) {
      Value& choice = choices.try_emplace(*piece.find("index")->as_int(), Value::map()).first->second;
      choice.set("index", *piece.find("index"));
      if (chat) {
        if (!choice.find("message")) choice.set("message", Value::map());
        Value& message = *choice.find("message");
        const Value& delta = *piece.find("delta");
        for (const char* name : {"role", "content", "reasoning_content"}) append_text(message, name, delta.find(name));
        append_calls(message, delta.find("tool_calls"));
      } else {
        append_text(choice, "text", piece.find("text"));
      }
      if (const Value* const logprobs = piece.find("logprobs"); logprobs && logprobs->is_map()) {
        if (!choice.find("logprobs")) choice.set("logprobs", Value::map());
        for (const auto& [name, list] : logprobs->entries) append_list(*choice.find("logprobs"), name.c_str(), &list);
      }
      if (!piece.find("finish_reason")->is_null()) choice.set("finish_reason", *piece.find("finish_reason"));
    }
  Value out = Value::list();
  for (auto& [index, choice] : choices) out.items.push_back(std::move(choice));
  return out;
}

// What has to be equal in a whole answer and in the sum of a stream: no ids of calls, and absent is null.
std::string comparable(const Value& choices) {
  std::string out;
  const auto text = [](const Value* value) { return value && value->is_text() ? json_text(value->scalar) : "null"; };
  for (const Value& choice : choices.items) {
    out +=
        str(*choice.find("index")->as_int(), " ", text(choice.find("finish_reason")), " ", text(choice.find("text")));
    if (const Value* const message = choice.find("message")) {
      const Value* const content = message->find("content");
      const bool empty = !content || content->is_null() || content->scalar.empty();
      out += str(" content ", empty ? "null" : text(content), " reasoning ", text(message->find("reasoning_content")));
      if (const Value* const calls = message->find("tool_calls"))
        for (const Value& call : calls->items)
          out +=
              str(" call ", text(call.find("function")->find("name")), text(call.find("function")->find("arguments")));
    }
    if (const Value* const logprobs = choice.find("logprobs"); logprobs && logprobs->is_map())
      for (const auto& [name, list] : logprobs->entries)
        if (!list.items.empty()) out += str(" ", name, to_json(list));
    out += "\n";
  }
  return out;
}

std::string usage_of(const Value& document) {
  const Value& usage = *document.find("usage");
  return str(*usage.find("prompt_tokens")->as_int(), "+", *usage.find("completion_tokens")->as_int(), " reasoning ",
             *usage.find("completion_tokens_details")->find("reasoning_tokens")->as_int());
}

struct Asked {
  std::string path, fields;  // without stream
  std::string body(bool stream) const {
    return "{" + fields + (stream ? R"(, "stream": true, "stream_options": {"include_usage": true}})" : "}");
  }
};

// Requests with many fields in many combinations.
std::vector<Asked> random_requests(size_t count) {
  std::mt19937 random(3);
  std::vector<Asked> out;
  while (out.size() < count) {
    const auto maybe = [&random](std::string field) { return random() % 2 ? ", " + field : ""; };
    const std::string word = str("story ", random() % 1000);
    Asked asked;
    std::string fields = str(R"("seed": )", random() % 1000, maybe(str(R"("n": )", 1 + random() % 3)),
                             maybe(str(R"("max_tokens": )", 1 + random() % 30)));
    if (random() % 2) {
      asked.path = chat_path;
      fields += R"(, "messages": [{"role": "user", "content": ")" + word + R"("}])";
      if (random() % 2) fields += str(R"(, "logprobs": true, "top_logprobs": )", random() % 4);
      if (random() % 2) fields += R"(, "tools": [{"type": "function", "function": {"name": "find"}}])";
    } else {
      asked.path = text_path;
      fields += random() % 2 ? R"(, "prompt": [")" + word + R"(", "The end"])" : R"(, "prompt": ")" + word + "\"";
      fields += maybe(R"("echo": true)") + maybe(str(R"("logprobs": )", random() % 4)) +
                maybe(R"("return_tokens_as_token_ids": true)");
    }
    asked.fields = fields;
    out.push_back(std::move(asked));
  }
  return out;
}

// Answers with reasoning and calls, of tokens that spell them, and answers of random tokens.
std::vector<text::TokenId> mixed_answer(const esurge::Request& request, int64_t choice) {
  static const std::vector<std::string> texts = {
      "Once there was a cat.",
      "<think>A cat,\nor a dog?</think>\n\nA dog, caf\xc3\xa9 \xf0\x9f\x90\xb6.",
      "<think>hm</think>Look: <tool_call>\n{\"name\": \"find\", \"arguments\": {\"what\": \"cat\"}}\n</tool_call>",
      "<tool_call>{\"name\": \"find\", \"arguments\": {}}</tool_call><tool_call>{\"name\": \"find\", \"arguments\": "
      "{\"n\": 2}}</tool_call>",
      "<tool_call>{\"name\": \"fi",
      ""};
  const uint64_t pick = uint64_t(request.sampling.seed.value_or(0)) + uint64_t(choice);
  if (pick % 8 >= texts.size()) return test::random_answer(request, choice);
  return tokens_of(texts[pick % 8]);
}

void reads_hermes(ServedModel& model) { model.format = {"hermes", "deepseek_r1"}; }

TEST(Answers, AreTheSameStreamedAndWhole) {
  const FakeServer server(mixed_answer, {}, reads_hermes);
  for (const Asked& asked : random_requests(300)) {
    const Reply whole = server.post(asked.path, asked.body(false)), stream = server.post(asked.path, asked.body(true));
    ASSERT_EQ(whole.status, 200) << asked.fields << whole.body;
    ASSERT_EQ(stream.status, 200) << asked.fields << stream.body;
    const std::vector<Value> events = stream.events();
    const Value document = whole.json();
    EXPECT_EQ(comparable(summed(events, asked.path == chat_path)), comparable(*document.find("choices")))
        << asked.fields;
    EXPECT_EQ(usage_of(events.back()), usage_of(document)) << asked.fields;
    EXPECT_TRUE(events.back().find("choices")->items.empty());
  }
}

TEST(Answers, AreTheSameBesideOthers) {
  const FakeServer server(
      mixed_answer, [](ServeConfig& config) { config.max_waiting_requests = 1000; }, reads_hermes);
  const std::vector<Asked> requests = random_requests(200);
  std::vector<std::string> alone;
  for (const Asked& asked : requests)
    alone.push_back(comparable(*server.post(asked.path, asked.body(false)).json().find("choices")));
  constexpr size_t clients = 16;
  std::vector<std::string> together(requests.size());
  std::vector<std::thread> threads;
  for (size_t client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      for (size_t i = client; i < requests.size(); i += clients) {
        const bool stream = i % 3 == 0;
        const Reply reply = server.post(requests[i].path, requests[i].body(stream));
        together[i] = reply.status != 200 ? reply.body
                      : stream            ? comparable(summed(reply.events(), requests[i].path == chat_path))
                                          : comparable(*reply.json().find("choices"));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(together[i], alone[i]) << requests[i].fields;
}

TEST(Answers, OfReasoningAndCallsAreTakenApart) {
  const FakeServer server(
      [](const esurge::Request&, int64_t) {
        return tokens_of(
            "<think>hm</think>Look: <tool_call>{\"name\": \"find\", \"arguments\": {\"n\": 1}}</tool_call>");
      },
      {}, reads_hermes);
  const std::string conversation = R"("messages": [{"role": "user", "content": "x"}])";
  const std::string tools = R"(, "tools": [{"type": "function", "function": {"name": "find"}}])";
  Value choice = server.post(chat_path, "{" + conversation + tools + "}").json().find("choices")->items[0];
  EXPECT_EQ(choice.find("finish_reason")->scalar, "tool_calls");
  EXPECT_EQ(choice.find("message")->find("reasoning_content")->scalar, "hm");
  EXPECT_EQ(choice.find("message")->find("content")->scalar, "Look:");
  const Value& function = *choice.find("message")->find("tool_calls")->items[0].find("function");
  EXPECT_EQ(function.find("name")->scalar + function.find("arguments")->scalar, "find{\"n\": 1}");
  // Without tools, or where none may be called, a call is content.
  for (const std::string& more : {std::string(), tools + R"(, "tool_choice": "none")"}) {
    choice = server.post(chat_path, "{" + conversation + more + "}").json().find("choices")->items[0];
    EXPECT_EQ(choice.find("finish_reason")->scalar, "stop");
    EXPECT_EQ(choice.find("message")->find("content")->scalar,
              "Look: <tool_call>{\"name\": \"find\", \"arguments\": {\"n\": 1}}</tool_call>");
  }
}

TEST(Answers, HaveTheLogProbabilitiesOfTheirContentAlone) {
  const FakeServer server([](const esurge::Request&, int64_t) { return tokens_of("<think>hm</think>Look"); }, {},
                          reads_hermes);
  const Value choice = server.post(chat_path, R"({"messages": [{"role": "user", "content": "x"}], "logprobs": true})")
                           .json()
                           .find("choices")
                           ->items[0];
  std::string text;
  for (const Value& token : choice.find("logprobs")->find("content")->items) text += token.find("token")->scalar;
  EXPECT_EQ(text, "Look");
}

TEST(Answers, EndWhenTheClientHasGone) {
  FakeServer server;
  server.engine->hold();
  const std::string waiting = R"({"prompt": ["a", "b"], "n": 2})";
  for (const bool stream : {false, true}) {
    const int64_t before = server.engine->added();
    RawClient client(server.http->port());
    client.send(FakeServer::posted(text_path, stream ? R"({"prompt": ["a", "b"], "stream": true})" : waiting));
    ASSERT_TRUE(test::eventually([&] { return server.engine->added() == before + 2; }));
    client.reset();
    EXPECT_TRUE(server.engine->has_aborted(stream ? 4 : 2));
    EXPECT_TRUE(test::eventually([&] { return server.jobs.count() == 0; }));
  }
}

TEST(Answers, FailWithAnEventAfterTheFirstByte) {
  FakeServer server;
  server.engine->fail_after(2);
  Reply reply = server.post(text_path, R"({"prompt": "a story", "seed": 5, "stream": true})");
  EXPECT_EQ(reply.status, 200);
  const std::vector<Value> events = reply.events();
  EXPECT_EQ(events.back().find("error")->find("message")->scalar, "The engine failed to answer the request.");
  server.engine->fail_after(0);
  reply = server.post(text_path, R"({"prompt": "a story"})");
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.error("message"), "The engine failed to answer the request.");
}

TEST(Answers, AreRefusedByModelsStatesAndLimits) {
  FakeServer server(
      test::random_answer, [](ServeConfig& config) { config.max_waiting_requests = 1; },
      [](ServedModel& model) { model.config.max_num_seqs = 1; });
  Reply reply = server.post(text_path, R"({"prompt": "x", "model": "other"})");
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.error("message"), "Model 'other' not found. Available: tiny");
  server.api.set_state(ServerState::paused);
  reply = server.post(text_path, R"({"prompt": "x"})");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.error("code"), "paused");
  server.api.set_state(ServerState::ready);
  server.engine->hold();
  const std::string request = FakeServer::posted(text_path, R"({"prompt": "x"})");
  const RawClient first(server.http->port(), request), second(server.http->port(), request);
  ASSERT_TRUE(test::eventually([&] { return server.jobs.count() == 2; }));
  reply = server.post(text_path, R"({"prompt": "x"})");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.error("message"), "The server is busy. Try again later.");
  EXPECT_NE(reply.head.find("Retry-After: 1\r\n"), std::string::npos);
}

TEST(Answers, EchoAPromptWithItsLogProbabilities) {
  const FakeServer server;
  const Reply reply =
      server.post(text_path, R"({"prompt": [[1, 403, 407]], "max_tokens": 0, "echo": true, "logprobs": 1})");
  const Value choice = reply.json().find("choices")->items[0];
  EXPECT_EQ(choice.find("text")->scalar, "Once upon");
  EXPECT_EQ(to_json(*choice.find("logprobs")->find("tokens")), R"(["<s>", "Once", " upon"])");
  EXPECT_EQ(to_json(*choice.find("logprobs")->find("text_offset")), "[0, 0, 4]");
  EXPECT_TRUE(choice.find("logprobs")->find("token_logprobs")->items[0].is_null());
  EXPECT_EQ(choice.find("finish_reason")->scalar, "length");
  EXPECT_EQ(usage_of(reply.json()), "3+0 reasoning 0");
}

TEST(ModelRoutes, TokenizeAndRender) {
  const FakeServer server;
  Reply reply = server.post("/tokenize", R"({"prompt": "Once upon", "return_token_strs": true})");
  EXPECT_EQ(reply.body,
            R"({"count": 3, "max_model_len": 512, "tokens": [1, 403, 407], "token_strs": ["<s>", "▁Once", "▁upon"], )"
            R"("offsets": [[0, 0], [0, 4], [4, 9]]})");
  EXPECT_EQ(server.post("/detokenize", R"({"tokens": [1, 403, 407]})").body, R"({"prompt": "<s> Once upon"})");
  EXPECT_EQ(server.post("/detokenize", R"({"tokens": []})").body, R"({"prompt": ""})");
  EXPECT_EQ(server.post("/detokenize", "{}").error("param"), "tokens");
  EXPECT_EQ(server.post("/detokenize", R"({"tokens": ["a"]})").error("param"), "tokens");
  EXPECT_EQ(server.post("/detokenize", R"({"tokens": [512]})").error("message"),
            "tokens: 512 is not a token id of the model (they are below 512)");
  const std::string conversation =
      R"({"messages": [{"role": "user", "content": "hi"}], "add_generation_prompt": false})";
  reply = server.post("/apply-template", conversation);
  EXPECT_EQ(reply.json().find("prompt")->scalar, "<s>Question: hi\n");
  EXPECT_EQ(to_json(*server.post("/tokenize", conversation).json().find("tokens")),
            to_json(*reply.json().find("tokens")));
  EXPECT_EQ(server.get("/tokenizer_info").json().find("bos_token")->scalar, "<s>");
  EXPECT_EQ(server.get("/props").json().find("models")->items[0].find("max_model_len")->scalar, "512");
  EXPECT_FALSE(server.get("/v1/tools").json().find("tool_parsers")->items.empty());
  EXPECT_NE(server.get("/metrics").body.find("esurge_running_requests{model_name=\"tiny\"} 0\n"), std::string::npos);
}

}  // namespace
}  // namespace easydel::server
