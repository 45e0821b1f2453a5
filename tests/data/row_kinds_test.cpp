#include "easydel/data/row_kinds.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::data {
namespace {

TEST(RowKinds, AreASetThatSaysWhichFieldsToGive) {
  constexpr RowKinds some{RowKind::messages, RowKind::preference};
  EXPECT_TRUE(some.has(RowKind::messages) && some.has(RowKind::preference));
  EXPECT_FALSE(some.has(RowKind::text) || some.has(RowKind::prompt_completion));
  EXPECT_TRUE(RowKinds().empty());
  EXPECT_EQ(fields_of({RowKind::preference}), "prompt + chosen + rejected");
  EXPECT_EQ(fields_of(some), "messages or prompt + chosen + rejected");
  EXPECT_EQ(fields_of({RowKind::text, RowKind::prompt_completion, RowKind::messages}),
            "texts, messages, or prompt + completion");
}

TypedRow typed_row(const std::string& json, FieldRules rules = {}) {
  rules.inform = "mixture.informs[0]";
  return typed({parse_json(json), "rows.jsonl:7"}, rules);
}

FieldRules taking(RowKinds kinds) {
  FieldRules rules;
  rules.taken = kinds;
  return rules;
}

// Of the kinds that the fields fit, the one that the method takes.
TEST(RowKinds, AreChosenByWhatIsTaken) {
  const std::string row = R"({"prompt": "p", "completion": "c", "label": 1, "chosen": "a", "rejected": "b"})";
  EXPECT_EQ(typed_row(row).kind, RowKind::preference);
  for (const RowKind kind : {RowKind::unpaired, RowKind::prompt_completion, RowKind::prompt})
    EXPECT_EQ(typed_row(row, taking({kind})).kind, kind) << name_of(kind);
  EXPECT_EQ(typed_row(row, taking({RowKind::messages})).kind, RowKind::preference);  // none of them
  EXPECT_TRUE(*typed_row(row, taking({RowKind::unpaired})).label.as_bool());
}

// A row that lacks a field of the kind that the method takes is told which, unless it is evidently of another kind.
TEST(RowKinds, AMissingFieldIsNamed) {
  using enum RowKind;
  const RowKinds pair{preference}, sft{text, messages, prompt_completion, tokens}, kto{unpaired, preference};
  const auto missing = [](const std::string& row, RowKinds taken) {
    const std::string text = test::refusal([&] { typed_row(row, taking(taken)); });
    const size_t begin = text.find("no field '") + 10;
    return text.find("no field '") == std::string::npos ? text : text.substr(begin, text.find('\'', begin) - begin);
  };
  EXPECT_EQ(
      test::refusal([&] { typed_row(R"({"prompt": "p", "chosen": "c"})", taking(pair)); }),
      "rows.jsonl:7: the row has no field 'rejected'; it has: prompt, chosen\n    give prompt + chosen + rejected, "
      "or name it with mixture.informs[0].format_fields: {your_name: rejected}");
  EXPECT_EQ(missing(R"({"prompt": "p", "rejected": "r"})", pair), "chosen");
  EXPECT_EQ(missing(R"({"prompt": "p"})", pair), "chosen");
  EXPECT_EQ(missing(R"({"text": "t", "rejected": "r"})", pair), "chosen");
  EXPECT_EQ(missing(R"({"instruction": "p", "chosen": "c"})", pair), "rejected");
  EXPECT_EQ(missing(R"({"question": "p", "better": "c"})", pair), "chosen");
  EXPECT_EQ(missing(R"({"prompt": "p"})", sft), "completion");
  EXPECT_EQ(missing(R"({"completion": "c"})", sft), "prompt");
  EXPECT_EQ(missing(R"({"instruction": "i", "input": "c"})", sft), "output");
  EXPECT_EQ(missing(R"({"story": "s"})", sft), "text");
  EXPECT_EQ(missing(R"({"prompt": "p", "completion": "c"})", kto), "label");
  EXPECT_EQ(missing(R"({"prompt": "p", "label": true})", kto), "completion");
  EXPECT_EQ(missing(R"({"prompt": "p", "completions": ["c"]})", {stepwise}), "labels");
  EXPECT_EQ(missing(R"({"anchor": "a"})", {contrast}), "positive");
  EXPECT_EQ(missing(R"({"story": "s"})", {prompt}), "prompt");
  EXPECT_EQ(missing(R"({"prompt": "p", "chosen": null, "rejected": "r"})", pair),
            "rows.jsonl:7: field 'chosen' is null\n    give it a value, or drop the row");
  // These are rows of another kind.
  EXPECT_EQ(typed_row(R"({"text": "t"})", taking(pair)).kind, text);
  EXPECT_EQ(typed_row(R"({"prompt": "p", "completion": "c"})", taking(pair)).kind, prompt_completion);
  EXPECT_EQ(typed_row(R"({"prompt": "p", "chosen": "c", "rejected": "r"})", taking(sft)).kind, preference);
  for (const RowKinds taken : {RowKinds{prompt}, pair})
    EXPECT_EQ(typed_row(R"({"messages": [{"role": "user", "content": "u"}]})", taking(taken)).kind, messages);
  EXPECT_EQ(typed_row(R"({"prompt": "p", "chosen": "c"})").kind, prompt);  // any kind is taken
}

TEST(RowKinds, ContrastsHaveAnyNumberOfNegatives) {
  const RowKinds contrast{RowKind::contrast};
  const TypedRow two = typed_row(R"({"anchor": "q", "positive": "p", "negatives": ["a", "b"]})", taking(contrast));
  EXPECT_EQ(two.kind, RowKind::contrast);
  EXPECT_EQ(two.query.scalar, "q");
  ASSERT_EQ(two.negatives.items.size(), 2u);
  FieldRules rules = taking(contrast);
  rules.names = {{"question", "query"}, {"doc", "positive"}, {"other", "negative"}};
  const TypedRow renamed = typed_row(R"({"question": "q", "doc": "p", "other": "n"})", rules);
  EXPECT_EQ(renamed.positive.scalar, "p");
  EXPECT_EQ(renamed.negatives.items.at(0).scalar, "n");
}

TEST(RowKinds, LabelledRowsAreTextsPairsOrWords) {
  const RowKinds labelled{RowKind::labelled};
  EXPECT_EQ(typed_row(R"({"text": "a", "label": 2})").kind, RowKind::text);
  const TypedRow pair = typed_row(R"({"sentence1": "a", "sentence2": "b", "label": "yes"})", taking(labelled));
  EXPECT_EQ(pair.kind, RowKind::labelled);
  EXPECT_EQ(pair.text.scalar + pair.text_pair.scalar + pair.label.scalar, "abyes");
  const TypedRow words = typed_row(R"({"tokens": ["a", "b"], "ner_tags": [0, 3]})", taking(labelled));
  EXPECT_EQ(words.text.items.size(), 2u);
  EXPECT_EQ(words.label.items.at(1).as_int(), 3);
}

TEST(RowKinds, AllColumnsAreKeptIfTheyAreAskedFor) {
  const char* const row = R"({"prompt": "p", "answer": "42", "tests": ["a"]})";
  EXPECT_TRUE(typed_row(row).columns.is_null());
  FieldRules rules = taking({RowKind::prompt});
  rules.all_columns = true;
  const TypedRow kept = typed_row(row, rules);
  EXPECT_EQ(kept.columns.find("answer")->scalar, "42");
  EXPECT_TRUE(fields_read(rules).empty());
}

}  // namespace
}  // namespace easydel::data
