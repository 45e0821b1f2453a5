// The formats of other programs, each against the row that it means.
#include <gtest/gtest.h>

#include "easydel/data/row_format.h"
#include "support/data.h"

namespace easydel::data {
namespace {

Value converted(const std::string& format, const std::string& json, const FormatNames& names = {}) {
  Row row{parse_json(json), "rows.jsonl:7"};
  FormatRow formatted(row, names);
  find_row_format(format)->convert(formatted);
  return row.fields;
}

// Fields of `row` that are not in `expected` do not matter.
void expect_fields(const Value& row, const std::string& expected) {
  for (const auto& [name, value] : parse_json(expected).entries) {
    const Value* const found = row.find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(*found, value) << name << ": " << to_json(*found);
  }
}

FormatNames columns(std::map<std::string, std::string> names) {
  FormatNames out;
  out.columns = std::move(names);
  out.inform = "mixture.informs[0]";
  return out;
}

TEST(RowFormats, Alpaca) {
  expect_fields(converted("alpaca", R"({"question": "Add.", "more": "1 2", "answer": "3", "prompt": "no"})",
                          columns({{"instruction", "question"}, {"input", "more"}, {"output", "answer"}})),
                R"({"instruction": "Add.", "input": "1 2", "output": "3", "prompt": null})");
  expect_fields(converted("alpaca", R"({"instruction": "And 2?", "input": "", "output": "4", "system": "Be short.",
                                        "history": [["1+1?", "2"]]})"),
                R"({"prompt": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "1+1?"},
                               {"role": "assistant", "content": "2"}, {"role": "user", "content": "And 2?"}],
                    "completion": [{"role": "assistant", "content": "4"}]})");
  expect_fields(converted("alpaca", R"({"instruction": "i", "chosen": "good", "rejected": "bad"})"),
                R"({"instruction": "i", "chosen": "good", "rejected": "bad"})");
  expect_fields(
      converted("alpaca", R"({"instruction": "i", "input": "x", "output": "o", "label": false})"),
      R"({"prompt": [{"role": "user", "content": "i\nx"}], "completion": [{"role": "assistant", "content": "o"}],
                    "label": false})");
  EXPECT_EQ(test::refusal([] {
              converted("alpaca", R"({"question": "q"})", columns({{"instruction", "question"}}));
            }),
            "rows.jsonl:7: the row has no field 'output'; it has: question\n    name it with "
            "mixture.informs[0].columns: {output: your_name}");
}

TEST(RowFormats, Dolly) {
  expect_fields(converted("dolly", R"({"instruction": "i", "context": "c", "response": "r"})"),
                R"({"instruction": "i", "input": "c", "output": "r"})");
}

TEST(RowFormats, ShareGpt) {
  const char* const tools = R"([{\"name\": \"weather\", \"parameters\": {}}])";
  const Value row = converted("sharegpt", str(R"({"system": "s", "tools": ")", tools, R"(", "conversations": [
      {"from": "human", "value": "How warm?"}, {"from": "function_call",
       "value": "{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}"},
      {"from": "observation", "value": "12"}, {"from": "gpt", "value": "12 degrees"}]})"));
  expect_fields(row, R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "How warm?"},
      {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function":
        {"name": "weather", "arguments": {"city": "Bern"}}}]},
      {"role": "tool", "content": "12"}, {"role": "assistant", "content": "12 degrees"}],
      "tools": [{"type": "function", "function": {"name": "weather", "parameters": {}}}]})");
  EXPECT_EQ(row.find("conversations"), nullptr);
  expect_fields(converted("sharegpt", R"({"conversations": [{"from": "human", "value": "q"}],
                  "chosen": {"from": "gpt", "value": "a"}, "rejected": {"from": "gpt", "value": "b"}})"),
                R"({"prompt": [{"role": "user", "content": "q"}], "chosen": [{"role": "assistant", "content": "a"}],
                    "rejected": [{"role": "assistant", "content": "b"}]})");
  EXPECT_NE(test::refusal([] {
              converted("sharegpt", R"({"conversations": [{"who": "me"}]})");
            }).find("rows.jsonl:7: a message has no role"),
            std::string::npos);
}

TEST(RowFormats, OpenAi) {
  expect_fields(converted("openai", R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
      {"type": "text", "text": "b"}]}, {"role": "assistant", "content": null, "function_call":
      {"name": "f", "arguments": "{}"}}, {"role": "function", "name": "f", "content": "1"}],
      "functions": [{"name": "f"}]})"),
                R"({"messages": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": null,
      "function_call": {"name": "f", "arguments": "{}"},
      "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{}"}}]},
      {"role": "tool", "name": "f", "content": "1"}], "tools": [{"type": "function", "function": {"name": "f"}}]})");
}

TEST(RowFormats, HelpfulAndHarmless) {
  expect_fields(converted("hh", R"({"chosen": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: good",
                          "rejected": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: bad"})"),
                R"({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                     {"role": "user", "content": "c"}],
          "chosen": [{"role": "assistant", "content": "good"}], "rejected": [{"role": "assistant", "content": "bad"}]})");
  EXPECT_EQ(
      test::refusal([] { converted("hh", R"({"chosen": "a", "rejected": "b"})"); }),
      "rows.jsonl:7: 'chosen' is not a transcript\n    it begins with two line ends and 'Human:' or 'Assistant:'");
}

TEST(RowFormats, Kto) {
  expect_fields(converted("kto", R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant",
                                     "content": "a"}], "good": true})",
                          columns({{"label", "good"}})),
                R"({"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}],
                    "label": true})");
  expect_fields(converted("kto", R"({"prompt": "q", "completion": "a", "label": 0})"),
                R"({"prompt": "q", "completion": "a", "label": 0})");
}

TEST(RowFormats, Segments) {
  EXPECT_EQ(test::refusal([] { converted("segments", R"({"segments": [{"text": "a"}]})"); }),
            "rows.jsonl:7: a part of 'segments' has no label that is true or false, or no text\n    as in [{\"label\": "
            "false, \"text\": \"Question\"}, {\"label\": true, \"text\": \"Answer\"}]");
}

TEST(RowFormats, KnowLlamaFactorysColumns) {
  const auto name = [](const char* format, const char* column) {
    return column_of_format(*find_row_format(format), column);
  };
  EXPECT_EQ(name("alpaca", "prompt"), "instruction");
  EXPECT_EQ(name("alpaca", "query"), "input");
  EXPECT_EQ(name("alpaca", "response"), "output");
  EXPECT_EQ(name("sharegpt", "messages"), "conversations");
  EXPECT_EQ(name("sharegpt", "kto_tag"), "label");
  EXPECT_EQ(name("kto", "prompt"), "prompt");
  EXPECT_EQ(name("alpaca", "nonsense"), "");
}

// LLaMA-Factory's next form: contents are lists of {type, value}, and messages have weights.
TEST(RowFormats, PartsMayCallTheirTextValue) {
  const Value row = plain_messages(
      parse_json(R"([{"role": "user", "content": [{"type": "text", "value": "hi"}], "loss_weight": 0.0}])"), {});
  EXPECT_EQ(row.items.at(0).find("content")->scalar, "hi");
  EXPECT_EQ(*row.items.at(0).find("loss_weight")->as_double(), 0.0);
}

}  // namespace
}  // namespace easydel::data
