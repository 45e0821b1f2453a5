#include "easydel/text/output/output_parser.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "easydel/base/files.h"
#include "easydel/probe/tool_lines.h"
#include "easydel/text/chat_template.h"
#include "easydel/text/output/reading.h"
#include "easydel/text/unicode.h"
#include "support/data.h"
#include "text/parsed_answer.h"

namespace easydel::text {
namespace {

namespace fs = std::filesystem;
using test::refusal;

std::vector<Value> cases() {
  std::vector<Value> out;
  const std::string text = files::read_compressed(test::test_data("toolcalls/cases.jsonl.gz"));
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    out.push_back(parse_json(text.substr(begin, end - begin), "cases"));
  return out;
}

// The answer in pieces of the given lengths in characters, cyclically.
Message parsed_in_pieces(std::string_view text, const OutputFormat& format, const OutputOptions& options,
                         const std::function<size_t()>& length) {
  OutputParser parser(format, options);
  Message out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    for (size_t n = std::max<size_t>(1, length()); n > 0 && end < text.size(); --n)
      end += utf8_length(static_cast<unsigned char>(text[end]));
    apply(parser.feed(text.substr(at, end - at)), out);
    at = end;
  }
  apply(parser.finish(), out);
  return out;
}

std::string stripped(const std::string& text) {
  const size_t first = text.find_first_not_of(" \n");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \n") - first + 1);
}

std::string kind_of(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::text:
      return "string";
    case Value::Kind::list:
      return "array";
    case Value::Kind::map:
      return "object";
    case Value::Kind::plain:
      break;
  }
  if (value.as_bool()) return "boolean";
  return value.scalar.find_first_of(".eE") == std::string::npos ? "integer" : "number";
}

void expect_call(const Value& call, const Value& wanted) {
  const std::string text = call.find("arguments")->scalar;
  if (const Value* name = wanted.find("name")) {
    EXPECT_EQ(call.find("name")->scalar, name->scalar);
  }
  if (const Value* id = wanted.find("id")) {
    EXPECT_EQ(call.find("id") ? call.find("id")->scalar : "", id->scalar);
  }
  if (const Value* whole = wanted.find("arguments_text")) {
    EXPECT_EQ(text, whole->scalar);
  }
  if (const Value* parts = wanted.find("arguments_text_contains"))
    for (const Value& part : parts->items) {
      EXPECT_NE(text.find(part.scalar), std::string::npos) << text;
    }
  if (!value_as_json(text, Notation::json)) return;
  const Value arguments = parse_json(text);
  if (const Value* whole = wanted.find("arguments")) {
    EXPECT_EQ(arguments, *whole) << text;
  }
  if (const Value* least = wanted.find("min_arguments")) {
    EXPECT_GE(static_cast<int64_t>(arguments.entries.size()), *least->as_int());
  }
  if (const Value* types = wanted.find("types"))
    for (const auto& [key, type] : types->entries) {
      EXPECT_EQ(kind_of(*arguments.find(key)), type.scalar) << key;
    }
  if (const Value* places = wanted.find("at"))
    for (const Value& place : places->items) {
      const Value* found = &arguments;
      for (const Value& key : place.items[0].items) found = found ? found->find(key.scalar) : nullptr;
      ASSERT_NE(found, nullptr) << text;
      EXPECT_EQ(*found, place.items[1]) << text;
    }
}

void expect_answer(const Value& got, const Value& wanted) {
  ASSERT_FALSE(got.find("error")) << got.find("error")->scalar;
  const auto& calls = got.find("tool_calls")->items;
  if (const Value* content = wanted.find("content")) {
    EXPECT_EQ(stripped(got.find("content")->scalar), stripped(content->scalar));
  }
  if (const Value* reasoning = wanted.find("reasoning")) {
    EXPECT_EQ(got.find("reasoning")->scalar, reasoning->scalar);
  }
  if (const Value* parts = wanted.find("content_contains"))
    for (const Value& part : parts->items) {
      EXPECT_NE(got.find("content")->scalar.find(part.scalar), std::string::npos);
    }
  if (const Value* count = wanted.find("num_calls")) {
    ASSERT_EQ(static_cast<int64_t>(calls.size()), *count->as_int());
  }
  if (const Value* least = wanted.find("min_calls")) {
    ASSERT_GE(static_cast<int64_t>(calls.size()), *least->as_int());
  }
  if (const Value* each = wanted.find("calls"))
    for (size_t i = 0; i < each->items.size() && i < calls.size(); ++i) expect_call(calls[i], each->items[i]);
}

TEST(OutputParser, AnswersEveryRecordedCaseAtOnceAndCharacterByCharacter) {
  const test::TemporaryFolder folder;
  const Value sources = parse_json(files::read_compressed(test::test_data("templates/templates.json.gz")));
  std::map<std::string, probe::ToolsProbe> probes;
  for (const Value& row : cases()) {
    const std::string parser = row.find("parser")->scalar,
                      name = row.find("template") ? row.find("template")->scalar : "";
    const fs::path file = name.empty() ? fs::path() : folder.path() / name;
    if (!name.empty() && !fs::exists(file)) test::write_file(file, sources.find(name)->scalar);
    for (const bool stream : {false, true}) {
      SCOPED_TRACE(parser + " " + row.find("name")->scalar + (stream ? " streamed: " : ": ") +
                   row.find("text")->scalar);
      const std::string key = parser + name + (stream ? "s" : "");
      auto probe = probes.find(key);
      if (probe == probes.end()) probe = probes.emplace(key, probe::ToolsProbe({parser, "", file, stream})).first;
      expect_answer(parse_json(probe->second.answer(to_json(row))), *row.find("expect"));
    }
  }
}

// What every parser is tried with: the recorded texts of all formats, not only its own.
TEST(OutputParser, GivesTheSameForEveryCutOfTheText) {
  std::mt19937 random(7);
  const std::vector<Value> rows = cases();
  for (const std::string& name : tool_parser_names()) {
    for (const Value& row : rows) {
      std::string own = row.find("parser")->scalar;
      if (own != "auto" && random() % 8 != 0 && own != name) continue;
      OutputOptions options;
      if (const Value* tools = row.find("tools")) options.tools = *tools;
      const OutputFormat format{name, random() % 2 ? "" : "qwen3"};
      std::string text = row.find("text")->scalar;
      if (random() % 3 == 0) text = text.substr(0, valid_prefix(text.substr(0, random() % (text.size() + 1))));
      const std::string whole = as_text(parse_output(text, format, options));
      EXPECT_EQ(as_text(parsed_in_pieces(text, format, options, [] { return 1; })), whole) << name << ": " << text;
      EXPECT_EQ(as_text(parsed_in_pieces(text, format, options, [&] { return random() % 9; })), whole)
          << name << ": " << text;
      options.certain = true;
      EXPECT_EQ(as_text(parsed_in_pieces(text, format, options, [] { return 1; })), whole) << name << ": " << text;
    }
  }
}

TEST(OutputParser, WithdrawsNothingIfItGivesOnlyWhatIsCertain) {
  int early = 0;
  for (const std::string& name : tool_parser_names()) {
    for (const Value& row : cases()) {
      for (const char* const reasoning : {"", "qwen3"}) {
        OutputOptions options;
        options.certain = true;
        if (const Value* tools = row.find("tools")) options.tools = *tools;
        const std::string& text = row.find("text")->scalar;
        OutputParser parser({name, reasoning}, options);
        size_t ended = 0;  // calls
        const auto check = [&](const Delta& delta, bool last) {
          ASSERT_FALSE(delta.content_withdrawn) << name << ": " << text;
          for (const Delta::Call& call : delta.calls) {
            ASSERT_FALSE(call.withdrawn) << name << ": " << text;
            ASSERT_EQ(call.index, ended++) << "a call comes once and whole: " << name << ": " << text;
          }
          early += !last && !delta.empty();
        };
        for (size_t at = 0, begin; at < text.size();) {
          begin = at;
          at += utf8_length(static_cast<unsigned char>(text[at]));
          check(parser.feed(std::string_view(text).substr(begin, at - begin)), false);
        }
        check(parser.finish(), true);
      }
    }
  }
  EXPECT_GT(early, 100000) << "what is certain comes before the end";
}

// Whether `text` can be continued to valid JSON: closes open brackets and parses it.
bool is_json_prefix(const std::string& text) {
  for (const char* more : {"",    "\"", "0",   "null",  "ull",      "ll",  "l",    "rue",   "ue",     "e",   "alse",
                           "lse", "se", ": 0", "\": 0", "\"x\": 0", "0\"", "00\"", "000\"", "0000\"", "\\\""}) {
    std::string tried = text + more, open;
    bool quoted = false;
    for (size_t i = 0; i < tried.size(); ++i) {
      if (tried[i] == '\\' && quoted)
        ++i;
      else if (tried[i] == '"')
        quoted = !quoted;
      else if (!quoted && (tried[i] == '{' || tried[i] == '['))
        open += tried[i] == '{' ? '}' : ']';
      else if (!quoted && (tried[i] == '}' || tried[i] == ']') && !open.empty())
        open.pop_back();
    }
    tried.append(open.rbegin(), open.rend());
    if (value_as_json(tried, Notation::json)) return true;
  }
  return false;
}

TEST(OutputParser, StreamsArgumentsAsPrefixesOfJson) {
  int seen = 0;
  for (const Value& row : cases()) {
    if (row.find("parser")->scalar == "auto") continue;
    OutputOptions options;
    if (const Value* tools = row.find("tools")) options.tools = *tools;
    OutputParser parser({row.find("parser")->scalar, ""}, options);
    Message message;
    const std::string& text = row.find("text")->scalar;
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      at += utf8_length(static_cast<unsigned char>(text[at]));
      const Delta delta = parser.feed(std::string_view(text).substr(begin, at - begin));
      apply(delta, message);
      for (const ToolCall& call : message.tool_calls) {
        seen += !call.arguments.empty();
        if (!delta.calls.empty() && !call.arguments.empty()) {
          ASSERT_TRUE(is_json_prefix(call.arguments)) << call.arguments;
        }
      }
    }
  }
  EXPECT_GT(seen, 5000);
}

TEST(OutputParser, KnowsEveryNameOfTheGuideAndItsAliases) {
  for (const char* name :
       {"deepseek_v3",    "deepseek_v31", "deepseek_v32",    "ernie45",        "functiongemma", "gemma4",
        "gigachat3",      "glm45",        "glm-4.5",         "glm47",          "glm-4.7",       "granite",
        "granite-20b-fc", "hermes",       "hunyuan_a13b",    "internlm",       "jamba",         "kimi_k2",
        "llama3_json",    "llama4_json",  "llama4_pythonic", "longcat",        "minimax",       "minimax_m2",
        "mistral",        "olmo3",        "openai",          "phi4_mini_json", "pythonic",      "qwen3_coder",
        "qwen3_xml",      "seed_oss",     "step3",           "step3p5",        "xlam"})
    EXPECT_NO_THROW(OutputParser({name, ""})) << name;
  for (const char* name : {"deepseek_r1",  "deepseek_v3", "glm45",           "holo2",
                           "kimi_k2",      "qwen3",       "qwen3_reasoning", "mistral",
                           "granite",      "gptoss",      "openai_gptoss",   "gemma4",
                           "hunyuan_a13b", "step3",       "step3p5",         "ernie45",
                           "seed_oss",     "olmo3",       "minimax_m2",      "minimax_m2_append_think",
                           "identity",     "none",        "passthrough"})
    EXPECT_NO_THROW(OutputParser({"", name})) << name;
  const std::string text = refusal([] { OutputParser({"hermez", ""}); });
  EXPECT_TRUE(text.starts_with("tool parser: there is none called 'hermez'\n    apertus, cohere_command, ")) << text;
}

TEST(OutputParser, LeavesWhatIsNoCallInTheContent) {
  EXPECT_EQ(parsed("hermes", "a <tool_call>{\"name\": 3}</tool_call> b"),
            "content[a <tool_call>{\"name\": 3}</tool_call> b] reasoning[]");
  EXPECT_EQ(parsed("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1, 2"),
            "content[<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1, 2] reasoning[]");
  EXPECT_EQ(parsed("pythonic", "[1] A. Author, 2020"), "content[[1] A. Author, 2020] reasoning[]");
  EXPECT_EQ(parsed("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>"),
            "content[<tool_call>\n<function=f>\n<parameter=a>] reasoning[]");
  EXPECT_EQ(parsed("none", "<tool_call>x"), "content[<tool_call>x] reasoning[]");
}

TEST(OutputParser, SaysWhenACallThatItBeganIsNone) {
  OutputParser parser({"hermes", ""});
  Delta delta = parser.feed("Hm. <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1");
  ASSERT_EQ(delta.calls.size(), 1U);
  EXPECT_EQ(delta.calls[0].name + delta.calls[0].arguments, "f{\"a\": ");
  delta = parser.finish();
  ASSERT_EQ(delta.calls.size(), 1U);
  EXPECT_TRUE(delta.calls[0].withdrawn);
  EXPECT_EQ(delta.content, " <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1");
}

TEST(OutputParser, IsBoundedOnHostileText) {
  const std::string deep(100'000, '[');
  EXPECT_TRUE(parsed("hermes", "<tool_call>" + deep).starts_with("content[<tool_call>[[["));
  EXPECT_TRUE(parsed("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": " + deep)
                  .starts_with("content[<tool_call>{\"name\""));
  EXPECT_TRUE(parsed("gemma4", "<|tool_call>call:f{a:" + deep).starts_with("content[<|tool_call>call:f{a:[[["));
  EXPECT_TRUE(parsed("pythonic", "[f(a=" + deep).starts_with("content[[f(a=[[["));
}

TEST(OutputParser, SeparatesReasoningByEachFormat) {
  const std::string both = "content[B] reasoning[A]";
  for (const char* name :
       {"deepseek_r1", "minimax_m2", "olmo3", "step3", "step3p5", "qwen3", "ernie45", "hunyuan_a13b", "glm45"})
    EXPECT_EQ(parsed("", "<think>\nA\n</think>\n\nB", name), both) << name;
  for (const char* name : {"deepseek_r1", "qwen3", "glm45"}) {
    EXPECT_EQ(parsed("", "A</think>B", name), both) << name;
  }
  EXPECT_EQ(parsed("", "A", "deepseek_r1"), "content[] reasoning[A]");
  EXPECT_EQ(parsed("", "A", "qwen3"), "content[A] reasoning[]");
  OutputOptions on;
  on.thinking = OutputOptions::Thinking::on;
  EXPECT_EQ(parsed("", "A", "qwen3", on), "content[] reasoning[A]");
  // A section of calls ends reasoning that nothing closed.
  EXPECT_EQ(parsed("kimi_k2",
                   "<think>A<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}"
                   "<|tool_call_end|><|tool_calls_section_end|>",
                   "kimi_k2"),
            "content[] reasoning[A] functions.f:0:f{}");
  EXPECT_EQ(parsed("kimi_k2", "<think>A</think>B<|tool_calls_section_begin|>", "kimi_k2"), both);
  EXPECT_EQ(parsed("", "A<|tool_calls_section_begin|>B", "kimi_k2", on),
            "content[<|tool_calls_section_begin|>B] reasoning[A]");
  EXPECT_EQ(parsed("", "<think>A</think><response>\nB\n</response>", "ernie45"), both);
  EXPECT_EQ(parsed("", "<think>\nA\n</think>\n<answer>\nB\n</answer>", "hunyuan_a13b"), both);
  EXPECT_EQ(parsed("", "[THINK]A[/THINK]B", "mistral"), both);
  EXPECT_EQ(parsed("", "<seed:think>A</seed:think>B", "seed_oss"), both);
  EXPECT_EQ(parsed("", "<|channel>thought\nA<channel|>B", "gemma4"), both);
  EXPECT_EQ(parsed("", "Here's my thought process: A Here is my response: B", "granite"), both);
  EXPECT_EQ(parsed("", "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>",
                   "gptoss"),
            both);
  EXPECT_EQ(parsed("", "A</think>B", "minimax_m2_append_think"), "content[<think>A</think>B] reasoning[]");
  EXPECT_EQ(parsed("", "<think>A</think>B", "identity"), "content[<think>A</think>B] reasoning[]");
}

TEST(OutputParser, CoercesBareTextByTheSchema) {
  const OutputOptions options =
      with_tools(R"([{"name": "f", "parameters": {"$defs": {"N": {"type": "integer"}}, "properties": {
      "s": {"type": "string"}, "n": {"$ref": "#/$defs/N"}, "b": {"type": "boolean"}, "o": {"anyOf": [{"type": "object"}, {"type": "null"}]},
      "e": {"enum": [1, 2]}, "x": {"type": ["number", "string"]}}}}])");
  const auto value = [&](const std::string& key, const std::string& text) {
    const Message message =
        parse_output("<tool_call><function=f><parameter=" + key + ">" + text + "</parameter></function></tool_call>",
                     {"qwen3_xml", ""}, options);
    return message.tool_calls.at(0).arguments;
  };
  EXPECT_EQ(value("s", "5"), "{\"s\": \"5\"}");
  EXPECT_EQ(value("n", "5"), "{\"n\": 5}");
  EXPECT_EQ(value("n", "five"), "{\"n\": \"five\"}");
  EXPECT_EQ(value("b", "True"), "{\"b\": true}");
  EXPECT_EQ(value("o", "None"), "{\"o\": null}");
  EXPECT_EQ(value("o", "{'a': [1, (2, 3)],}"), "{\"o\": {\"a\": [1, [2, 3]]}}");
  EXPECT_EQ(value("e", "2"), "{\"e\": 2}");
  EXPECT_EQ(value("x", "1.5"), "{\"x\": 1.5}");
  EXPECT_EQ(value("x", "a"), "{\"x\": \"a\"}");
  EXPECT_EQ(value("unknown", "{\"a\": 1}"), "{\"unknown\": \"{\\\"a\\\": 1}\"}");
}

}  // namespace
}  // namespace easydel::text
