// Required calls in formats whose arguments are not one JSON object: random texts of their languages, read by the
// parsers.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "easydel/base/error.h"
#include "easydel/text/output/answer_language.h"
#include "easydel/text/output/call_shapes.h"
#include "json_check.h"
#include "text/language_walk.h"

namespace easydel::text {
namespace {

using test::random_text;
using test::Reading;

// A tool with these properties, all of which are required.
Value tool_with(const std::string& properties, const std::string& more = "") {
  const Value map = parse_json("{" + properties + "}");
  Value required = Value::list();
  for (const auto& [name, schema] : map.entries) required.items.push_back(Value::text(name));
  return parse_json(
      R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {)" +
      properties + R"(}, "required": )" + to_json(required) + more + "}}}]");
}

AnswerRules required(const Value& tools) {
  AnswerRules out{.required = true, .parallel = false};
  for (const Value& tool : tools.items) out.tools.push_back(&tool);
  return out;
}

std::vector<std::string> formats() {
  std::vector<std::string> out;
  for (const std::string& format : tool_parser_names())
    if (const CallShape* const shape = find_call_shape(format); shape && shape->arguments) out.push_back(format);
  return out;
}

// The arguments of the call in a random text of the format.
Value random_arguments(const std::string& format, const Value& tools, std::mt19937& random) {
  const std::string text = random_text(*answer_language({format, ""}, required(tools)), random);
  const Message message = parse_output(text, {format, ""}, {.tools = tools, .certain = true});
  EXPECT_EQ(message.tool_calls.size(), 1u) << format << ": " << text;
  EXPECT_EQ(message.content, "") << format << ": " << text;
  if (message.tool_calls.size() != 1) return {};
  const Value& schema = *tools.items[0].find("function")->find("parameters");
  Value out = parse_json(message.tool_calls[0].arguments);
  EXPECT_TRUE(test::is_valid(schema, out)) << format << ": " << message.tool_calls[0].arguments << " in " << text;
  return out;
}

TEST(AnswerArguments, AreReadAsTheirSchemaSays) {
  const std::vector<std::string> properties = {
      R"("s": {"type": "string", "maxLength": 5})",
      R"("s": {"type": "string", "pattern": "^[<\"'\\\\ n]{0,6}$"})",
      R"("s": {"enum": ["null", "None", "", " a ", "</parameter", "x\ny", "1", "ü"]})",
      R"("s": {"type": "string", "enum": ["1", "true", "{}"]})",
      R"("i": {"type": "integer", "minimum": -3, "maximum": 120}, "n": {"type": "number"}, "b": {"type": "boolean"})",
      R"("u": {"type": ["string", "null"], "maxLength": 4}, "v": {"type": ["integer", "string"], "maxLength": 4})",
      R"("c": {"anyOf": [{"type": "number"}, {"type": "string", "maxLength": 3}, {"type": "null"}]})",
      R"("c": {"const": 3}, "d": {"enum": [1, "a", null, true, [1, "<"], {"k": "</x>"}]})",
      R"("l": {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 3})",
      R"("o": {"type": "object", "properties": {"a<b": {"type": "boolean"}, "t": {"type": "null"}},
               "required": ["t"], "additionalProperties": false})",
      R"("o": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 2}, "b": {"type": "array",
               "items": {"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": false},
               "maxItems": 2}}, "additionalProperties": false})"};
  std::mt19937 random(11);
  for (const std::string& format : formats())
    for (const std::string& one : properties) {
      const Value tools = tool_with(one, R"(, "additionalProperties": false)");
      for (int i = 0; i < 4; ++i) random_arguments(format, tools, random);
    }
}

TEST(AnswerArguments, MayBeLeftOutOrBeUnnamed) {
  const Value optional = parse_json(R"([{"name": "f", "parameters": {"type": "object", "properties": {
    "a": {"$ref": "#/$defs/word"}, "b": {"type": "integer"}, "c": {"type": "boolean"}},
    "required": ["b"], "additionalProperties": false, "$defs": {"word": {"type": "string", "maxLength": 3}}}}])");
  const Value unnamed = parse_json(R"([{"name": "f", "parameters": {"type": "object", "minProperties": 1,
    "maxProperties": 2, "additionalProperties": {"type": "string", "maxLength": 2}}}])");
  std::mt19937 random(3);
  for (const std::string& format : formats()) {
    const auto run = [&](const Value& tools) {
      const std::string text = random_text(*answer_language({format, ""}, required(tools)), random);
      const Message message = parse_output(text, {format, ""}, {.tools = tools, .certain = true});
      EXPECT_EQ(message.tool_calls.size(), 1u) << format << ": " << text;
      return message.tool_calls.empty() ? std::pair(Value(), text)
                                        : std::pair(parse_json(message.tool_calls[0].arguments), text);
    };
    std::set<size_t> sizes;
    for (int i = 0; i < 24; ++i) {
      const auto [arguments, text] = run(optional);
      EXPECT_TRUE(test::is_valid(*optional.items[0].find("parameters"), arguments)) << format << text;
      sizes.insert(arguments.entries.size());
    }
    EXPECT_EQ(sizes, (std::set<size_t>{1, 2, 3})) << format;
    for (int i = 0; i < 6; ++i) {
      const auto [arguments, text] = run(unnamed);
      ASSERT_GE(arguments.entries.size(), 1u) << format << text;
      for (const auto& [name, value] : arguments.entries) EXPECT_TRUE(value.is_text()) << format << text;
    }
  }
}

TEST(AnswerArguments, CannotBreakOutOfTheirPlace) {
  const Value tools = tool_with(R"("s": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}})");
  const std::string begin = "<tool_call>\n<function=f>\n<parameter=s>\n", end = "\n</parameter>\n<parameter=l>\n",
                    close = "\n</parameter>\n</function>\n</tool_call>";
  const constrain::Language language = *answer_language({"qwen3_coder", ""}, required(tools));
  const auto outcome = [&](const std::string& text) { return test::read(language, text); };
  EXPECT_EQ(outcome(begin + "a </p> b" + end + R"(["x \u003c y"])" + close), Reading::accepted);
  EXPECT_EQ(outcome(begin + "null and more" + end + "[]" + close), Reading::accepted);
  EXPECT_EQ(outcome(begin + "null" + end + "[]" + close), Reading::refused);
  EXPECT_EQ(outcome(begin + "Null" + end), Reading::refused);
  EXPECT_EQ(outcome(begin + "a</parameter>b"), Reading::refused);
  EXPECT_EQ(outcome(begin + "a</function>"), Reading::refused);
  EXPECT_EQ(outcome(begin + "a" + end + R"(["<)"), Reading::refused);
  EXPECT_EQ(outcome(begin + "a" + end + "null"), Reading::refused);
  // Strict arguments under auto, and those of tools that are not strict.
  AnswerRules rules = required(tools);
  rules.required = false, rules.restricted = true;
  const constrain::Language free = *answer_language({"qwen3_coder", ""}, rules);
  EXPECT_EQ(test::read(free, "Text. " + begin + "null" + end + "anything" + close + " More."), Reading::accepted);
  EXPECT_EQ(test::read(free, "Text. <tool_call>\n<function=g"), Reading::refused);
  EXPECT_EQ(test::read(*answer_language({"pythonic", ""}, required(tools)), "[f(s=\"a'b\", l=[\"\\\"\", \"x\"])]"),
            Reading::accepted);
  EXPECT_EQ(test::read(*answer_language({"pythonic", ""}, required(tools)), "[f(s=null"), Reading::refused);
  EXPECT_EQ(test::read(*answer_language({"gemma4", ""}, required(tools)),
                       "<|tool_call>call:f{s:<|\"|>a {b}\n<|\"|>,l:[<|\"|>x<|\"|>]}<tool_call|>"),
            Reading::accepted);
}

TEST(AnswerArguments, RefuseNamesThatAFormatCannotWrite) {
  Value tools = tool_with(R"("a b<": {"type": "integer"})");
  EXPECT_THROW(constrain::compile(*answer_language({"qwen3_coder", ""}, required(tools))), UserError);
  EXPECT_THROW(constrain::compile(*answer_language({"pythonic", ""}, required(tools))), UserError);
  tools.items[0].find("function")->set("name", Value::text("f g"));
  try {
    answer_language({"glm45", ""}, required(tools));
    ADD_FAILURE() << "not refused";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "tools: the name 'f g' cannot be written in the model's format of calls\n"
                 "    use letters, digits, '_', '-' and '.'");
  }
}

}  // namespace
}  // namespace easydel::text
