// Bodies of requests: what is read, and everything that is wrong with one in one error.
#include <gtest/gtest.h>

#include "easydel/server/api_error.h"
#include "easydel/server/text_request.h"
#include "server/read_request.h"

namespace easydel::server {
namespace {

using test::read;
using test::wrong;

std::string chat(const std::string& fields) {
  return R"({"messages": [{"role": "user", "content": "a"}])" + (fields.empty() ? "" : ", " + fields) + "}";
}

TEST(ChatRequest, ReadsItsFields) {
  const ChatRequest request = read<ChatRequest>(chat(
      R"("model": "m", "stream": true, "stream_options": {"include_usage": true}, "n": 2, "max_tokens": 5,
         "max_completion_tokens": 7, "stop": "x", "temperature": 0, "logit_bias": {"5": -100}, "logprobs": true,
         "top_logprobs": 3, "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
         "tool_choice": {"type": "function", "function": {"name": "f"}}, "response_format": {"type": "text"})"));
  EXPECT_EQ(request.max_tokens(), 7);
  EXPECT_EQ(request.generation.model, "m");
  EXPECT_TRUE(request.generation.stream_options->include_usage);
  EXPECT_EQ(request.generation.stop->at(0), "x");
  EXPECT_EQ(request.generation.temperature, 0.0);
  EXPECT_EQ(request.generation.logit_bias->at("5"), -100);
  EXPECT_EQ(request.chat.top_logprobs, 3);
  EXPECT_EQ(request.conversation.messages.items.size(), 1u);
  EXPECT_EQ(request.generation.top_p, std::nullopt);
}

TEST(ChatRequest, PassesOverUnknownFieldsUnlessTheyMatter) {
  std::vector<std::string> passed_over;
  read_request<ChatRequest>(read_value(chat(R"("safety": 1, "n": 1, "x": {"y": 2})")), {}, passed_over);
  EXPECT_EQ(passed_over, (std::vector<std::string>{"safety", "x"}));
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("temprature": 1)"), true), "temprature: no such key\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("audio": {"voice": "x"})")), "audio: sound is not supported\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("audio": null)")), "");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("web_search_options": {})")),
            "web_search_options: searching the web is not supported\n");
}

TEST(ChatRequest, RefusesEverythingThatIsWrongAtOnce) {
  EXPECT_EQ(wrong<ChatRequest>("{}"), "messages: is missing\n");
  const std::string out =
      wrong<ChatRequest>(chat(R"("n": 0, "temperature": "hot", "top_p": 1.5, "stream": 1, "seed": true)"));
  for (const char* line :
       {"n: 0 is out of range\n", "temperature: 'hot' is not a number\n", "top_p: 1.5 is out of range\n",
        "stream: '1' is not true or false\n", "seed: 'true' is not an integer\n"})
    EXPECT_NE(out.find(line), std::string::npos) << line << out;
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("seed": 9223372036854775808)")).substr(0, 6), "seed: ");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("n": 129)")), "n: 129 is out of range\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("n": 128, "top_logprobs": 21, "logprobs": true)")),
            "top_logprobs: 21 is out of range\n");
}

TEST(ChatRequest, RefusesWhatIsWrongWithTypesAndRulesAtOnce) {
  // In the order of the body, whichever rule found them.
  EXPECT_EQ(wrong<ChatRequest>(R"({"tool_choice": "required", "messages": [{"role": "usr", "content": 1}, 2],
                                   "audio": {}, "top_p": 0, "user": 7, "max_tokens": 0, "n": 0, "guided_regex": "a",
                                   "response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"},
                                   "functions": [{"name": 1}]})"),
            "tool_choice: a call is required, but there are no tools\n"
            "messages[0].role: 'usr' is not a role\nmessages[1]: '2' is not an object\naudio: sound is not supported\n"
            "top_p: 0 would leave no token\nuser: '7' is not a string\nmax_tokens: 0 leaves no answer\n"
            "n: 0 is out of range\nguided_regex: and other constraints exclude each other\n"
            "response_format: and other constraints exclude each other\n"
            "functions[0].name: '1' is not a string\n");
  // A field that could not be read is not missed by the rules over it and others.
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("stream": "x", "stream_options": {"include_usage": true}, "logprobs": 3,
                                       "top_logprobs": 2, "tools": 1, "tool_choice": "required", "n": 0,
                                       "best_of": 2)")),
            "stream: 'x' is not true or false\nlogprobs: '3' is not true or false\n"
            "tools: '1' is not a list of tools\nn: 0 is out of range\n");
}

TEST(ChatRequest, RefusesWrongConstraintsWithEverythingElse) {
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("structured_outputs": {"regx": "a", "regex": 5, "choice": ["a", 1]}, "n": 0)")),
            "structured_outputs.regex: '5' is not a string\nstructured_outputs.choice[1]: '1' is not a string\n"
            "n: 0 is out of range\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("n": 0, "structured_outputs": {"regx": "a"})")),
            "n: 0 is out of range\nstructured_outputs.regx: no such key\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("structured_outputs": 1, "user": 7)")),
            "structured_outputs: is not a section\nuser: '7' is not a string\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("structured_outputs": null, "guided_regex": "a")")), "");
}

TEST(ChatRequest, RefusesWhatTheServerDoesNotTakeWithEverythingElse) {
  std::vector<std::string> passed_over;
  const RequestRules rules{.refused = {{"tools", "no tools here", "leave them out"}, {"chat_template", "no", ""}},
                           .found = {{"prompt", {}, "was read before", ""}}};
  const auto problems = [&](const std::string& body) {
    try {
      read_request<ChatRequest>(read_value(body), rules, passed_over);
    } catch (const config::ConfigError& error) {
      std::string out;
      for (const UserError& one : error.problems) out += one.where + ": " + one.problem + "\n";
      return out;
    }
    return std::string();
  };
  EXPECT_EQ(problems(chat(R"("tools": [], "chat_template": null)")), "prompt: was read before\n");
  EXPECT_EQ(problems(R"({"tools": [1], "prompt": 1, "chat_template": "", "n": 0, "messages": []})"),
            "tools: no tools here\nprompt: was read before\nchat_template: no\nn: 0 is out of range\n"
            "messages: is empty\n");
}

// The code that a client gets for a body.
std::string code_of(const std::string& body, const RequestRules& rules = {}) {
  std::vector<std::string> passed_over;
  try {
    read_request<ChatRequest>(read_value(body), rules, passed_over);
  } catch (const UserError& error) {
    return error_of(error).code;
  }
  return "";
}

TEST(ChatRequest, SaysWhatKindOfProblemComesFirst) {
  EXPECT_EQ(code_of("{}"), "missing_field");
  EXPECT_EQ(code_of(R"({"messages": null})"), "missing_field");
  EXPECT_EQ(code_of(R"({"messages": [{"role": "user"}]})"), "missing_field");
  EXPECT_EQ(code_of(R"({"messages": [{"role": "user", "content": 5}]})"), "invalid_value");
  EXPECT_EQ(code_of(R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})"),
            "unsupported_parameter");
  EXPECT_EQ(code_of(chat(R"("tools": [{"type": "web_search"}])")), "unsupported_parameter");
  EXPECT_EQ(code_of(chat(R"("tools": [{"type": "function"}])")), "missing_field");
  EXPECT_EQ(code_of(chat(R"("audio": {})")), "unsupported_parameter");
  EXPECT_EQ(code_of(chat(R"("num_beams": 2)")), "unsupported_parameter");
  EXPECT_EQ(code_of(chat(R"("num_beams": 1, "guidance_scale": 1, "use_beam_search": false)")), "");
  EXPECT_EQ(code_of(chat(R"("x": 1)"), {.strict = true}), "unsupported_parameter");
  EXPECT_EQ(code_of(chat(R"("tools": [1])"), {.refused = {{"tools", "no", ""}}}), "unsupported_parameter");
  EXPECT_EQ(code_of(chat(""), {.missing = {{"prompt", {}, "is missing", ""}}}), "missing_field");
  EXPECT_EQ(code_of(chat(""), {.found = {{"prompt", {}, "is wrong", ""}}}), "invalid_value");
  EXPECT_EQ(code_of(chat(R"("n": 0, "audio": {})")), "invalid_value");
  EXPECT_EQ(code_of(chat(R"("max_new_tokens": -1)")), "invalid_value");  // by another name of max_tokens
  EXPECT_EQ(code_of(chat(R"("reasoning_effort": "much")")), "invalid_value");
}

TEST(GenerationFields, HaveTheNamesOfGenerationConfigs) {
  const auto fields = read<ChatRequest>(chat(R"("max_new_tokens": 3, "stop_strings": "x", "no_repeat_ngram_size": 2,
                                                "sequence_bias": [[[5], 1.5]], "timings_per_token": true)"))
                          .generation;
  EXPECT_EQ(fields.max_tokens, 3);
  EXPECT_TRUE(fields.timings);
  EXPECT_EQ(to_json(sampler_fields(fields)), R"({"no_repeat_ngram_size": 2, "sequence_bias": [[[5], 1.5]]})");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("no_repeat_ngram_size": -1, "eta_cutoff": "a", "num_beams": 2)")),
            "no_repeat_ngram_size: -1 is out of range\neta_cutoff: 'a' is not a number\n"
            "num_beams: beam search is not supported by the server\n");
}

TEST(ChatRequest, ChecksMessages) {
  const auto messages = [](const std::string& list) { return wrong<ChatRequest>("{\"messages\": " + list + "}"); };
  EXPECT_EQ(messages("\"a\""), "messages: 'a' is not a list of messages\n");
  EXPECT_EQ(messages("[]"), "messages: is empty\n");
  EXPECT_EQ(messages("[1, {}]"), "messages[0]: '1' is not an object\nmessages[1].role: is required\n");
  EXPECT_EQ(messages(R"([{"role": "usr", "content": "a"}])"), "messages[0].role: 'usr' is not a role\n");
  EXPECT_EQ(messages(R"([{"role": "user"}, {"role": "user", "content": 1}])"),
            "messages[0].content: is required\nmessages[1].content: '1' is not a string or a list of parts\n");
  EXPECT_EQ(messages(R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text"}, 1, {},
                          {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}])"),
            "messages[0].content[1].text: is required\nmessages[0].content[2]: '1' is not an object\n"
            "messages[0].content[3].type: is required\n"
            "messages[0].content[4]: parts of type 'image_url' are not supported\n");
  EXPECT_EQ(messages(R"([{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
                          "function": {"name": "f", "arguments": "{}"}}]},
                         {"role": "tool", "tool_call_id": "c", "content": "1"}])"),
            "");
  EXPECT_EQ(messages(R"([{"role": "assistant"}, {"role": "assistant", "tool_calls": [1, {}, {"function": {}},
                          {"function": {"name": "f", "arguments": 1}}]}, {"role": "user", "content": "a", "tool_calls": []}])"),
            "messages[0].content: is required\nmessages[1].tool_calls[0]: '1' is not an object\n"
            "messages[1].tool_calls[1].function: is required\nmessages[1].tool_calls[2].function.name: is required\n"
            "messages[1].tool_calls[3].function.arguments: '1' is not a string or an object\n"
            "messages[2].tool_calls: only an assistant's message has calls\n");
}

TEST(ChatRequest, ChecksToolsAndFormats) {
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("tools": 1)")), "tools: '1' is not a list of tools\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("tools": [{}, {"type": "web"}, {"function": {"name": 1, "parameters": []}}])")),
            "tools[0].function: is required\ntools[1]: tools of type 'web' are not supported\n"
            "tools[2].function.name: '1' is not a string\ntools[2].function.parameters: a list is not an object\n");
  const std::string tool = R"("tools": [{"function": {"name": "f"}}], )";
  EXPECT_EQ(wrong<ChatRequest>(chat(tool + R"("tool_choice": "required")")), "");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("tool_choice": "required")")),
            "tool_choice: a call is required, but there are no tools\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(tool + R"("tool_choice": "f")")),
            "tool_choice: 'f' is not none, auto, required or a function\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(tool + R"("tool_choice": {"function": {"name": "g"}})")),
            "tool_choice: 'g' is not one of the tools\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(tool + R"("tool_choice": 1)")),
            "tool_choice: is not none, auto, required, a function or allowed_tools\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("response_format": {"type": "xml"})")),
            "response_format: is not an object with type text, json_object or json_schema\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("response_format": {"type": "json_schema"})")),
            "response_format.json_schema: has no schema\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("top_logprobs": 1)")), "top_logprobs: is given without logprobs\n");
}

TEST(GenerationFields, AreOfTheirTypes) {
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("stop": 1)")), "stop: '1' is not a string\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("stop": ["a", 1.5], "user": 7)")),
            "stop[1]: '1.5' is not a string\nuser: '7' is not a string\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("bad_words": [1])")), "bad_words[0]: '1' is not a string\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("user": true)")), "user: true is not a string\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("user": null, "stop": null, "seed": 1)")), "");
}

TEST(GenerationFields, ContradictEachOther) {
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("n": 3, "best_of": 2)")), "best_of: 2 is less than n\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("stream": true, "best_of": 2)")),
            "best_of: cannot be streamed: which answers are best is known at the end\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("stream_options": {})")), "stream_options: is given without stream\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("top_p": 0)")), "top_p: 0 would leave no token\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("stop": ["a", ""])")), "stop[1]: is empty\n");
  EXPECT_EQ(wrong<ChatRequest>(chat("\"stop\": \"" + std::string(1025, 'a') + "\"")),
            "stop[0]: is longer than 1024 bytes\n");
  std::string stops;
  for (int i = 0; i < 65; ++i) stops += i == 0 ? "\"a\"" : ", \"a\"";
  EXPECT_EQ(wrong<ChatRequest>(chat("\"stop\": [" + stops + "]")), "stop: has more than 64 strings\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("logit_bias": {"a": 1})")), "logit_bias: 'a' is not a token id\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("logit_bias": {"1": 101})")), "logit_bias: 101 is not from -100 to 100\n");
  EXPECT_EQ(wrong<ChatRequest>(chat(R"("guided_regex": "a", "guided_choice": ["a"])")),
            "guided_regex: and other constraints exclude each other\n");
}

TEST(TextRequest, ReadsPrompts) {
  EXPECT_EQ(read<TextRequest>(R"({"prompt": "a", "logprobs": 0, "max_tokens": 0, "echo": true})").generation.max_tokens,
            0);
  EXPECT_EQ(read<TextRequest>(R"({"prompt": ["a", "b"]})").text.prompt.items.size(), 2u);
  EXPECT_EQ(wrong<TextRequest>(R"({"prompt": ["a", 1]})"), "prompt[1]: '1' is not a string\n");
  EXPECT_EQ(wrong<TextRequest>(R"({"prompt": {}})"), "prompt: a map is not a text, token ids, or a list of either\n");
  EXPECT_EQ(wrong<TextRequest>(R"({"prompt": "a", "logprobs": 21})"), "logprobs: 21 is out of range\n");
}

TEST(TokenizeRequest, IsATextOrAConversation) {
  EXPECT_EQ(wrong<TokenizeRequest>(R"({"prompt": "a"})"), "");
  EXPECT_EQ(wrong<TokenizeRequest>(R"({"messages": [{"role": "user", "content": "a"}]})"), "");
  EXPECT_EQ(wrong<TokenizeRequest>("{}"), "prompt: is required, or messages\n");
  EXPECT_EQ(wrong<TokenizeRequest>(R"({"prompt": "a", "messages": []})"),
            "prompt: is given together with messages\nmessages: is empty\n");
}

}  // namespace
}  // namespace easydel::server
