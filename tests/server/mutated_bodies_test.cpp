// Bodies of all routes with random changes, down to an engine: each is answered, or refused in the error form, and
// never with a 500. EASYDEL_MUTATED_BODIES=100000 tries more of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "server/fake_engine.h"

namespace easydel::test {
namespace {

const std::string tools =
    R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties":
       {"a": {"type": "integer"}}, "required": ["a"]}}}])";

const std::vector<std::pair<std::string, std::string>>& seeds() {
  static const std::vector<std::pair<std::string, std::string>> out = {
      {"/v1/chat/completions", R"({"model": "tiny", "messages": [{"role": "system", "content": "s"}, {"role": "user",
        "content": [{"type": "text", "text": "Hi"}]}, {"role": "assistant", "content": null, "tool_calls": [{"id": "c",
        "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]}, {"role": "tool", "tool_call_id": "c",
        "content": "2"}], "tool_choice": "auto", "parallel_tool_calls": false, )" +
                                   tools + "}"},
      {"/v1/chat/completions", R"({"messages": [{"role": "user", "content": "Hi"}], "stream": true, "stream_options":
        {"include_usage": true, "continuous_usage_stats": true}, "n": 2, "max_tokens": 9, "stop": ["a", "b"], "temperature": 0.5,
        "top_p": 0.9, "seed": 3, "logit_bias": {"5": -100}, "logprobs": true, "top_logprobs": 2, "prompt_logprobs": 1,
        "return_token_ids": true, "bad_words": ["x"], "min_tokens": 1, "truncate_prompt_tokens": 5})"},
      {"/v1/chat/completions", R"({"messages": [{"role": "user", "content": "Hi"}], "response_format": {"type":
        "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"type": "object", "properties": {"a": {"enum":
        [1, "b", null]}}, "required": ["a"]}}}, "reasoning_effort": "low", "chat_template_kwargs": {"x": [1, {"y": 2}]}})"},
      {"/v1/completions",
       R"({"prompt": ["Once", "Twice"], "max_tokens": 5, "echo": true, "logprobs": 3, "best_of": 2, "n": 2,
        "suffix": null, "guided_regex": "[ab]+"})"},
      {"/v1/completions", R"({"prompt": [[5, 6], [7]], "max_tokens": 0, "echo": true, "logprobs": 1, "stream": true})"},
      {"/v1/responses",
       R"({"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id":
        "c", "output": "1"}], "instructions": "i", "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
        "text": {"format": {"type": "text"}}, "reasoning": {"effort": "low"}, "stream": true, "metadata": {"a": "b"},
        "max_output_tokens": 20, "store": true, "include": ["message.output_text.logprobs"], "top_logprobs": 1})"},
      {"/v1/messages",
       R"({"model": "tiny", "max_tokens": 20, "system": [{"type": "text", "text": "s"}], "messages": [{"role":
        "user", "content": [{"type": "text", "text": "Hi"}]}, {"role": "assistant", "content": [{"type": "tool_use", "id": "t",
        "name": "f", "input": {"a": 1}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content":
        "2"}]}], "tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto"}, "thinking":
        {"type": "enabled", "budget_tokens": 1024}, "stop_sequences": ["x"], "stream": true, "top_k": 5})"},
      {"/v1/messages/count_tokens", R"({"model": "tiny", "messages": [{"role": "user", "content": "Hi"}]})"},
      {"/tokenize", R"({"prompt": "Hi", "add_special_tokens": true})"},
      {"/tokenize", R"({"messages": [{"role": "user", "content": "Hi"}]})"},
      {"/detokenize", R"({"tokens": [5, 6, 7]})"},
      {"/apply-template", R"({"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": true})"},
      {"/v1/embeddings", R"({"input": ["a", "b"], "encoding_format": "base64", "dimensions": 2})"},
      {"/v1/load_lora_adapter", R"({"lora_name": "a", "lora_path": "b", "load_inplace": true})"},
  };
  return out;
}

class Mutation {
 public:
  explicit Mutation(uint64_t seed) : random_(seed) {}

  std::string changed(const std::string& body) {
    Value document = parse_json(body);
    for (size_t changes = 1 + below(3); changes > 0; --changes) change(at_random(document));
    std::string out = to_json(document);
    if (below(8) == 0) out[below(out.size())] = char(below(256));
    if (below(16) == 0) out.resize(below(out.size() + 1));
    return out;
  }

 private:
  size_t below(size_t most) { return std::uniform_int_distribution<size_t>(0, most - 1)(random_); }

  Value& at_random(Value& value) {
    const size_t children = value.items.size() + value.entries.size();
    if (children == 0 || below(4) == 0) return value;
    const size_t child = below(children);
    return at_random(child < value.items.size() ? value.items[child]
                                                : value.entries[child - value.items.size()].second);
  }
  Value odd() {
    static const std::vector<std::string> values = {
        "null",
        "true",
        "false",
        "0",
        "-1",
        "1",
        "1e400",
        "-0.0",
        "0.5",
        "9223372036854775807",
        "9223372036854775808",
        "1e-320",
        "\"\"",
        "\"a\"",
        "\"\\u0000\"",
        "\"\\ud83d\\ude00\"",
        "[]",
        "{}",
        "[[]]",
        "[null]",
        "{\"\": null}",
        "[1, \"a\", {}]",
        "\"auto\"",
        "\"required\"",
        "\"none\"",
        "\"tool\"",
        "\"assistant\"",
        "\"<|im_end|>\"",
        "[{\"type\": \"image_url\"}]",
        "{\"type\": \"object\", \"properties\": {\"a\": {\"$ref\": \"#\"}}}",
        "\"(a+)+$\"",
        "[0, -1, 511, 512, 2147483648]"};
    const std::string& text = values[below(values.size())];
    return text == "1e400" || text == "1e-320" ? Value::number(text == "1e400" ? 1e308 : 5e-324) : parse_json(text);
  }
  void change(Value& value) {
    switch (below(4)) {
      case 0:
        if (value.is_map() && !value.entries.empty()) {
          value.entries.erase(value.entries.begin() + ptrdiff_t(below(value.entries.size())));
          value.key_places.clear();
        } else if (value.is_list() && !value.items.empty()) {
          value.items.erase(value.items.begin() + ptrdiff_t(below(value.items.size())));
        }
        return;
      case 1:
        if (value.is_list() && !value.items.empty()) {
          const Value copy = value.items[below(value.items.size())];
          for (size_t i = below(20); i > 0; --i) value.items.push_back(copy);
          return;
        }
        [[fallthrough]];
      case 2:
        if (value.is_text()) {
          value.scalar.insert(below(value.scalar.size() + 1),
                              std::string(below(3) == 0 ? 3000 : 2, char('!' + below(90))));
          return;
        }
        [[fallthrough]];
      default:
        value = odd();
    }
  }
  std::mt19937_64 random_;
};

TEST(MutatedBodies, AreAnsweredOrRefused) {
  const char* const given = std::getenv("EASYDEL_MUTATED_BODIES");
  const uint64_t count = given ? std::stoull(given) : 1500;
  const FakeServer server;
  std::map<int, int> statuses;
  for (uint64_t i = 0; i < count; ++i) {
    const auto& [path, body] = seeds()[i % seeds().size()];
    const std::string sent = i < seeds().size() ? body : Mutation(i).changed(body);
    const Reply reply = server.post(path, sent);
    ++statuses[reply.status];
    ASSERT_TRUE(reply.status == 200 || (reply.status >= 400 && reply.status < 500) || reply.status == 501)
        << i << ": " << path << " " << sent << "\n"
        << reply.status << " " << reply.body;
    if (reply.status == 200) {
      EXPECT_EQ(reply.body.find("has a defect"), std::string::npos) << path << " " << sent;
      continue;
    }
    const Value answer = parse_json(reply.body);
    const Value* const error = answer.find("error");
    ASSERT_TRUE(error && error->find("message") && !error->find("message")->scalar.empty())
        << path << " " << reply.body;
  }
  // Both kinds are common, or the changes are too small or too large.
  EXPECT_GT(statuses[200], int(count / 20));
  EXPECT_GT(statuses[400], int(count / 5));
}

}  // namespace
}  // namespace easydel::test
