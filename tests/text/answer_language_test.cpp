// Answers that keep to a request's tools and formats: random texts of their languages, read by the parsers.
#include "easydel/text/output/answer_language.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "easydel/base/error.h"
#include "easydel/text/constrain/constraint.h"
#include "easydel/text/output/call_shapes.h"
#include "json_check.h"
#include "support/data.h"
#include "text/language_walk.h"

namespace easydel::text {
namespace {

using constrain::Language;
using test::random_text;
using test::read;
using test::Reading;
using Thinking = OutputOptions::Thinking;

const Value& tools() {
  static const Value out = parse_json(R"([
    {"type": "function", "function": {"name": "get \"x\"", "strict": true, "parameters": {"type": "object", "properties":
      {"city": {"enum": ["Paris", "Köln"]}, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
      "required": ["city", "days"], "additionalProperties": false}}},
    {"type": "function", "function": {"name": "stop", "parameters": {"properties": {}, "additionalProperties": false}}}
  ])");
  return out;
}

// Names in JSON may have quotes, others not.
Value tools_of(std::string_view format) {
  Value out = tools();
  const CallShape& shape = *find_call_shape(format);
  if (shape.arguments || !shape.before_name.back().ends_with('"'))
    out.items[0].find("function")->set("name", Value::text("get_x"));
  return out;
}

AnswerRules rules_of(const Value& tools, bool required) {
  AnswerRules out{.required = required};
  for (const Value& tool : tools.items) out.tools.push_back(&tool);
  return out;
}

void expect_declared(const Message& message, const Value& tools, const std::string& text) {
  for (const ToolCall& call : message.tool_calls) {
    const auto tool = std::ranges::find_if(
        tools.items, [&](const Value& one) { return one.find("function")->find("name")->scalar == call.name; });
    ASSERT_NE(tool, tools.items.end()) << call.name << " in " << text;
    EXPECT_TRUE(easydel::test::is_valid(*tool->find("function")->find("parameters"), parse_json(call.arguments)))
        << call.arguments << " in " << text;
  }
}

TEST(AnswerLanguage, MakesCallsThatTheFormatsParserReads) {
  std::mt19937 random(5);
  size_t formats = 0;
  for (const std::string& format : tool_parser_names()) {
    const CallShape* const shape = find_call_shape(format);
    if (!shape) continue;
    ++formats;
    const Value own = tools_of(format);
    AnswerRules rules = rules_of(own, true);
    size_t calls = 0, most = 0;
    for (int i = 0; i < 12; ++i) {
      rules.parallel = i % 3 > 0;
      const std::string text = random_text(*answer_language({format, ""}, rules), random);
      const Message message = parse_output(text, {format, ""}, {.tools = own, .certain = true});
      ASSERT_GE(message.tool_calls.size(), 1u) << format << ": " << text;
      if (!rules.parallel) {
        EXPECT_EQ(message.tool_calls.size(), 1u) << format << ": " << text;
      }
      EXPECT_EQ(message.content, "") << format << ": " << text;
      expect_declared(message, own, format + ": " + text);
      calls += message.tool_calls.size();
      most = std::max(most, message.tool_calls.size());
    }
    EXPECT_EQ(most > 1, shape->several) << format;
  }
  EXPECT_EQ(formats, 38u);
}

TEST(AnswerLanguage, KeepsStrictArgumentsToTheirSchemaUnderAuto) {
  const Value own = tools();
  const Language language = *answer_language({"hermes", ""}, rules_of(own, false));
  const std::string call = R"(<tool_call>
{"name": "get \"x\"", "arguments": )";
  EXPECT_EQ(read(language, "Any text < tool."), Reading::accepted);
  EXPECT_EQ(read(language, "Text " + call + R"({"city": "Paris", "days": 3}})" + "\n</tool_call>"), Reading::accepted);
  EXPECT_EQ(read(language, "Text " + call + R"({"city": "Paris", "days": 3}})" + "\n</tool_call> and text"),
            Reading::accepted);
  EXPECT_EQ(read(language, call + R"({"city": "Rome)"), Reading::refused);
  // The other tool is not strict: any object.
  EXPECT_EQ(read(language, "<tool_call>\n{\"name\": \"stop\", \"arguments\": {\"y\": 1}}\n</tool_call>"),
            Reading::accepted);
  EXPECT_EQ(read(language, "<tool_call>\n{\"name\": \"other"), Reading::refused);
  Value free = own;
  free.items[0].find("function")->set("strict", Value::boolean(false));
  AnswerRules others = rules_of(free, false);
  EXPECT_EQ(answer_language({"hermes", ""}, others).has_value(), false);
  others.restricted = true;
  EXPECT_EQ(read(*answer_language({"hermes", ""}, others), "a <tool_call>\n{\"name\": \"other"), Reading::refused);
}

TEST(AnswerLanguage, LetsReasoningComeFirst) {
  AnswerRules rules{.content = Language{.kind = Language::Kind::regex, .source = "[0-9]+"}};
  const OutputFormat qwen{"hermes", "qwen3"}, r1{"", "deepseek_r1"};
  const auto outcome = [&](const OutputFormat& format, std::string_view text) {
    return read(*answer_language(format, rules), text);
  };
  EXPECT_EQ(outcome({"", ""}, "12"), Reading::accepted);
  EXPECT_EQ(outcome({"", ""}, "a"), Reading::refused);
  EXPECT_EQ(outcome(qwen, "12"), Reading::accepted);
  EXPECT_EQ(outcome(qwen, "<think>well</think>\n\n12"), Reading::accepted);
  EXPECT_EQ(outcome(qwen, "<think>well</think>\n\na"), Reading::refused);
  EXPECT_EQ(outcome(qwen, "<think>1"), Reading::begun);
  EXPECT_EQ(outcome(qwen, "well"), Reading::refused);
  EXPECT_EQ(outcome(r1, "well</think>12"), Reading::accepted);
  EXPECT_EQ(outcome(r1, "12"), Reading::begun);
  rules.begun = "<think>\n";
  EXPECT_EQ(outcome(qwen, "well</think>12"), Reading::accepted);
  EXPECT_EQ(outcome(qwen, "12"), Reading::begun);
  rules.begun = "<think>\n\n</think>\n\n";
  EXPECT_EQ(outcome(qwen, "12"), Reading::accepted);
  EXPECT_EQ(outcome(qwen, "well"), Reading::refused);
  rules.begun = "";
  rules.thinking = Thinking::off;
  EXPECT_EQ(outcome(qwen, "<think>"), Reading::refused);
}

TEST(AnswerLanguage, AllowsContentOrCalls) {
  const Value own = tools();
  AnswerRules rules = rules_of(own, false);
  rules.content = Language{.kind = Language::Kind::json_schema, .source = R"({"type": "integer"})"};
  const Language language = *answer_language({"hermes", ""}, rules);
  EXPECT_EQ(read(language, "12"), Reading::accepted);
  EXPECT_EQ(read(language, "<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>"), Reading::accepted);
  EXPECT_EQ(read(language, "text"), Reading::refused);
}

// Whatever its strings spell, content before calls is told apart from them and satisfies its schema.
TEST(AnswerLanguage, PutsContentBeforeCalls) {
  const std::string markers = R"("<tool_call>", "<function name=\"f\">", "[TOOL_CALLS][", "functools[{", "<|channel|>",
      "<tool_calls>[", "<|end|>", "function call<|role_sep|>", "```json\n[", "<think>", "</think>", "<function=f>",
      "<｜tool▁calls▁begin｜>", "<|tool_call|>[", "[f(x=1)]", "<seed:think>", "◁/think▷")";
  const std::string schema = R"({"type": "object", "required": ["t"], "additionalProperties": false, "properties": {
      "t": {"enum": [)" + markers +
                             R"(]}, "u": {"type": "array", "items": {"type": "string", "maxLength": 3}}}})";
  const Value own = parse_json(R"([{"function": {"name": "f", "strict": true, "parameters": {"type": "object",
      "properties": {"i": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["i"],
      "additionalProperties": false}}}])");
  std::mt19937 random(5);
  size_t formats_with_both = 0;
  for (const std::string& format : tool_parser_names()) {
    const CallShape* const shape = find_call_shape(format);
    const OutputFormat whole{format, shape ? "" : "gptoss"};
    AnswerRules rules = rules_of(own, false);
    rules.content = Language{.kind = Language::Kind::json_schema, .source = schema};
    size_t contents = 0, both = 0;
    for (int i = 0; i < 16; ++i) {
      const std::string channel = i % 2 ? "final<|message|>" : "commentary to=functions.";
      const std::string text =
          random_text(*answer_language(whole, rules), random, shape ? "" : "<|channel|>" + channel);
      const Message message = parse_output(text, whole, {.tools = own, .certain = true});
      expect_declared(message, own, format + ": " + text);
      if (message.content.empty()) continue;
      ++contents;
      both += !message.tool_calls.empty();
      ASSERT_TRUE(easydel::test::is_valid(parse_json(schema), parse_json(message.content))) << format << ": " << text;
    }
    EXPECT_GT(contents, 0u) << format;
    formats_with_both += both > 0;
    const bool bare =
        shape &&
        std::set<std::string>{"llama3_json", "llama4_json", "pythonic", "llama4_pythonic", "xlam"}.contains(format);
    EXPECT_TRUE(both == 0 || (shape && !bare)) << format;
  }
  EXPECT_GT(formats_with_both, 25u);
}

TEST(AnswerLanguage, RefusesFormatsThatCannotBeConstrained) {
  const Value own = tools();
  const auto refused = [&](const OutputFormat& format, bool required) {
    try {
      answer_language(format, rules_of(own, required));
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused({"", ""}, true),
            "tool_choice: the model has no format of calls\n"
            "    use tool_choice auto without strict and response_format");
  EXPECT_EQ(refused({"llama3_json", ""}, false),
            "tools: calls in the format 'llama3_json' have no marker, so strict cannot hold with tool_choice auto\n"
            "    use tool_choice required, or leave strict out");
}

TEST(AnswerLanguage, MakesCallsAndContentInChannels) {
  const OutputFormat format{"openai", "gptoss"};
  Value own = tools();
  own.items[0].find("function")->set("name", Value::text("get_x"));
  std::mt19937 random(5);
  const std::string thought = "<|channel|>analysis<|message|>Well.<|end|><|start|>assistant";
  const std::string call = "<|channel|>commentary to=functions.", final = "<|channel|>final<|message|>";
  AnswerRules rules = rules_of(own, true);
  for (const std::string& before : {std::string(), thought})
    for (int i = 0; i < 6; ++i) {
      const std::string text = random_text(*answer_language(format, rules), random, before + call);
      const Message message = parse_output(text, format, {.tools = own, .certain = true});
      ASSERT_EQ(message.tool_calls.size(), 1u) << text;
      EXPECT_EQ(message.content, "") << text;
      EXPECT_EQ(message.reasoning, before.empty() ? "" : "Well.") << text;
      expect_declared(message, own, text);
    }
  EXPECT_EQ(read(*answer_language(format, rules), final), Reading::refused);
  EXPECT_EQ(read(*answer_language(format, rules), thought + final), Reading::refused);
  EXPECT_EQ(read(*answer_language(format, rules), thought), Reading::begun);
  EXPECT_EQ(read(*answer_language(format, rules), call + "other "), Reading::refused);
  // Strict arguments under auto: content is free.
  rules.required = false;
  EXPECT_EQ(read(*answer_language(format, rules), thought + final + "Any <text>"), Reading::accepted);
  EXPECT_EQ(read(*answer_language(format, rules), call + R"(get_x <|constrain|>json<|message|>{"city": "Rome)"),
            Reading::refused);
  AnswerRules content{.content = Language{.kind = Language::Kind::json_schema, .source = R"({"type": "integer"})"}};
  EXPECT_EQ(read(*answer_language(format, content), thought + final + "12"), Reading::accepted);
  EXPECT_EQ(read(*answer_language(format, content), final + "text"), Reading::refused);
  EXPECT_EQ(read(*answer_language(format, content), call), Reading::refused);
}

// The text of an answer with a ^ where its reasoning begins or ends, in pieces of `size` bytes.
std::string watched(const std::string& format, const std::string& answer, size_t size, const std::string& begun = "",
                    Thinking thinking = Thinking::unset) {
  ReasoningWatch watch({.tools = "", .reasoning = format}, begun, thinking);
  std::string out;
  bool open = watch.push("");
  if (open) out += "^";
  for (size_t at = 0; at < answer.size(); at += size) {
    const std::string piece = answer.substr(at, size);
    out += piece;
    if (const bool now = watch.push(piece); now != open) open = now, out += "^";
  }
  return out;
}

TEST(ReasoningWatch, SeesWhereReasoningBeginsAndEnds) {
  EXPECT_EQ(watched("deepseek_r1", "a</think>b<think>c</think>", 1), "^a</think>^b<think>c</think>");
  EXPECT_EQ(watched("deepseek_r1", "<think>a</think>b", 1), "^<think>a</think>^b");
  EXPECT_EQ(watched("deepseek_r1", "a</think>b", 1, "", Thinking::off), "a</think>b");
  EXPECT_EQ(watched("qwen3", " \n<think>a</think>b", 1), " \n<think>^a</think>^b");
  EXPECT_EQ(watched("qwen3", " <think>a</think>b", 100), " <think>a</think>b") << "the piece ends outside";
  EXPECT_EQ(watched("qwen3", "<think>a</th", 100), "<think>a</th^");
  EXPECT_EQ(watched("qwen3", "<thin> <think>a</think>b", 1), "<thin> <think>a</think>b");
  EXPECT_EQ(watched("qwen3", "a</think>b", 1, "<think>\n"), "^a</think>^b");
  EXPECT_EQ(watched("qwen3", "a</think>b", 1, "<think>\n\n</think>\n\n"), "a</think>b");
  EXPECT_EQ(watched("", "<think>a</think>b", 1), "<think>a</think>b");
  EXPECT_EQ(watched("gptoss",
                    "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|channel|>"
                    "final<|message|>c",
                    1),
            "<|channel|>analysis^<|message|>a<|end|>^<|start|>assistant<|channel|>analysis^<|message|>b<|channel|>^"
            "final<|message|>c");
  EXPECT_EQ(watched("gptoss", "<|channel|>analysis<|message|>a<|channel|>analysis<|message|>b", 1),
            "<|channel|>analysis^<|message|>a<|channel|>^analysis^<|message|>b");
}

TEST(ConstrainMarkers, MayBeSpecialTokens) {
  using namespace constrain;
  const std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::load(test::test_data("tokenizers/falcon_like.json.gz"));
  const TokenId special = *tokenizer->id_of("</s>");
  ASSERT_TRUE(tokenizer->is_special(special));
  const TokenId other = *tokenizer->id_of("<unk>"), letter = *tokenizer->id_of("b");
  const auto bytes = std::make_shared<const TokenBytes>(tokenizer, std::vector<TokenId>{});
  const Language end = Language::marker("</s>"), letters{.kind = Language::Kind::regex, .source = "[a-c]"};
  const auto constraint =
      std::make_shared<const Constraint>(compile(Language::sequence({letters, end, letters, end})), bytes);
  Matcher matcher(constraint);
  std::vector<MaskWord> mask(mask_words(bytes->size()));
  const auto allows = [&](TokenId id) { return matcher.fill(mask), has_token(mask, id); };
  EXPECT_FALSE(allows(special));
  EXPECT_FALSE(matcher.accept(special));
  EXPECT_TRUE(matcher.accept(letter));
  EXPECT_TRUE(allows(special));
  EXPECT_FALSE(allows(other));
  EXPECT_FALSE(allows(letter));
  EXPECT_TRUE(allows(*tokenizer->id_of("<")));  // the same text from other tokens
  EXPECT_FALSE(matcher.accept(other));
  EXPECT_TRUE(matcher.accept(special));
  EXPECT_FALSE(allows(special));
  EXPECT_TRUE(matcher.accept(letter));
  EXPECT_TRUE(matcher.accept(special));
  EXPECT_TRUE(matcher.must_end());
  // A longer text than a special token's is not that token, nor is a shorter one.
  for (const char* marker : {"</s>!", "</s", "<"}) {
    Matcher near(
        std::make_shared<const Constraint>(compile(Language::sequence({Language::marker(marker), letters})), bytes));
    EXPECT_FALSE(near.accept(special)) << marker;
    near.fill(mask);
    EXPECT_FALSE(has_token(mask, special)) << marker;
  }
}

TEST(ConstrainLists, CountTheirParts) {
  const Language a{.kind = Language::Kind::choice, .choices = {"a"}}, comma = Language::marker(",");
  const auto list = [&](int64_t min, int64_t max, bool commas, std::string_view text) {
    Language out{.kind = Language::Kind::repeat, .parts = {a}, .min = min, .max = max};
    if (commas) out.parts.push_back(comma);
    return read(out, text);
  };
  EXPECT_EQ(list(0, -1, true, ""), Reading::accepted);
  EXPECT_EQ(list(0, -1, true, "a,a,a"), Reading::accepted);
  EXPECT_EQ(list(0, -1, true, "a,"), Reading::begun);
  EXPECT_EQ(list(2, 3, true, "a"), Reading::begun);
  EXPECT_EQ(list(2, 3, true, "a,a,a,"), Reading::refused);
  EXPECT_EQ(list(1, 2, false, "aa"), Reading::accepted);
  EXPECT_EQ(list(1, 2, false, "aaa"), Reading::refused);
  EXPECT_EQ(list(0, 0, false, "a"), Reading::refused);
  const Language other{.kind = Language::Kind::choice, .choices = {"a,"}};
  EXPECT_NE(Language::sequence({a, other}).key(), Language::sequence({other, a}).key());
}

}  // namespace
}  // namespace easydel::text
