#include "easydel/data/row_steps.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::data {
namespace {

std::optional<Row> applied(const InformConfig& inform, const std::string& json) {
  return RowSteps(inform, "mixture.informs[0]").apply({parse_json(json), "rows.jsonl:7"});
}

Value fields_of(const InformConfig& inform, const std::string& json) { return applied(inform, json)->fields; }

TEST(RowSteps, FieldsAreRenamedAlsoInListsOfMaps) {
  InformConfig inform;
  inform.format_fields = {{"question", "prompt"}, {"messages.from", "role"}, {"messages.value", "messages.content"}};
  EXPECT_EQ(fields_of(inform, R"({"question": "q", "messages": [{"from": "a", "value": "b"}]})"),
            parse_json(R"({"prompt": "q", "messages": [{"role": "a", "content": "b"}]})"));
  inform.format_fields = {{"a.b", "c"}};
  EXPECT_EQ(fields_of(inform, R"({"a.b": 1})"), parse_json(R"({"c": 1})")) << "a name may have a dot";
  EXPECT_EQ(test::refusal([&] { applied(inform, R"({"x": null})"); }),
            "rows.jsonl:7: the row has no field 'a.b'; it has: x (null)\n    drop it from "
            "mixture.informs[0].format_fields");
}

TEST(RowSteps, FilterAndMapSeeTheRenamedRow) {
  InformConfig inform;
  inform.format_fields = {{"body", "text"}};
  inform.filter = "{{ text | length > 2 and lang == 'en' }}";
  inform.map = {{"prompt", "Q: {{ text }}\nA:"}, {"label", "{{ score > 3 }}"}, {"text", "{{ text | upper }}"}};
  EXPECT_FALSE(applied(inform, R"({"body": "ab", "lang": "en", "score": 1})"));
  EXPECT_FALSE(applied(inform, R"({"body": "abc", "lang": "de", "score": 1})"));
  const Value fields = fields_of(inform, R"({"body": "abc", "lang": "en", "score": 4})");
  EXPECT_EQ(fields.find("prompt")->scalar, "Q: abc\nA:") << "templates see the row before any field is set";
  EXPECT_EQ(fields.find("text")->scalar, "ABC");
  EXPECT_EQ(*fields.find("label")->as_bool(), true);
  EXPECT_EQ(test::refusal([&] { applied(inform, R"({"body": "abc", "lang": "en"})"); }),
            "rows.jsonl:7: mixture.informs[0].map.label:1:12: 'score' is undefined");
}

TEST(RowSteps, AFileRendersTheWholeRow) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "row.jinja", R"({"prompt": {{ q | tojson }}, "completion": "{{ a }}"})");
  InformConfig inform;
  inform.preprocessing_fn = (folder / "row.jinja").string();
  EXPECT_EQ(fields_of(inform, R"({"q": "say \"x\"", "a": 3})"),
            parse_json(R"({"prompt": "say \"x\"", "completion": "3"})"));
  test::write_file(folder / "row.jinja", "{{ q }}");
  EXPECT_EQ(test::refusal([&] { applied(inform, R"({"q": [1]})"); }),
            "rows.jsonl:7: mixture.informs[0].preprocessing_fn gives no row\n    it renders one JSON object, as in "
            "{\"text\": {{ text | tojson }}}");
  inform.preprocessing_fn.reset();
  inform.format_callback = (folder / "row.jinja").string();
  test::write_file(folder / "row.jinja", "{{ {'text': q} }}");
  EXPECT_EQ(fields_of(inform, R"({"q": "x"})"), parse_json(R"({"text": "x"})"));
}

// The functions are the library's own; tests/install has them from a plug-in.
TEST(RowSteps, FunctionsMakeNewRowsOrLeaveThemOut) {
  register_row_function("doubled", [](const Value& row) -> std::optional<Value> {
    const Value* const text = row.find("text");
    if (!text) refuse("text", "is missing", "each row has a text");
    if (text->scalar == "no map") return *text;
    if (text->scalar.empty()) return std::nullopt;
    Value out = row;
    out.set("text", Value::text(text->scalar + text->scalar));
    return out;
  });
  register_row_function("counted", [](const Value& row) -> std::optional<Value> {
    Value out = Value::map();
    out.set("input_ids", Value::list()).items.push_back(Value::integer(int64_t(row.find("text")->scalar.size())));
    return out;
  });
  InformConfig inform;
  inform.preprocessing_fn = inform.format_callback = "doubled";
  inform.map = {{"text", "{{ text }}!"}};
  EXPECT_EQ(fields_of(inform, R"({"text": "ab", "n": 1})"), parse_json(R"({"text": "abababab!", "n": 1})"));
  EXPECT_FALSE(applied(inform, R"({"text": ""})"));
  EXPECT_EQ(test::refusal([&] { applied(inform, R"({"body": "ab"})"); }),
            "rows.jsonl:7: mixture.informs[0].preprocessing_fn: text: is missing\n    each row has a text");
  EXPECT_EQ(test::refusal([&] { applied(inform, R"({"text": "no map"})"); }),
            "rows.jsonl:7: mixture.informs[0].preprocessing_fn gives no row\n    the function returns a map of fields");
  inform = {};
  inform.map = {{"text", "{{ text }}!"}};
  const RowSteps steps(inform, "mixture.informs[0]", "counted");
  EXPECT_EQ(steps.apply({parse_json(R"({"text": "ab"})"), "rows.jsonl:7"})->fields, parse_json(R"({"input_ids": [3]})"))
      << "the callback is the last step";
  EXPECT_TRUE(steps.fields({"text"}).empty()) << "a function may read every field";
}

TEST(RowSteps, RolesAndFieldsOfMessagesHaveOtherNames) {
  InformConfig inform;
  inform.message_fields = {{"role", "speaker"}, {"content", "says"}};
  inform.roles = {{"customer", {{std::string("user")}}}, {"assistant", {{std::string("agent"), "bot"}}}};
  EXPECT_EQ(
      fields_of(inform, R"({"messages": [{"speaker": "customer", "says": "a"}, {"speaker": "bot", "says": "b"}]})"),
      parse_json(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})"));
}

TEST(RowSteps, OnlyTheNeededFieldsAreRead) {
  InformConfig inform;
  EXPECT_EQ(RowSteps(inform, "i").fields({"text"}), std::vector<std::string>{"text"});
  inform.format_fields = {{"messages.from", "role"}};
  EXPECT_EQ(RowSteps(inform, "i").fields({"text"}), (std::vector<std::string>{"text", "messages.from", "messages"}));
  inform.filter = "{{ x }}";
  EXPECT_TRUE(RowSteps(inform, "i").fields({"text"}).empty()) << "a template may look at any field";
}

}  // namespace
}  // namespace easydel::data
