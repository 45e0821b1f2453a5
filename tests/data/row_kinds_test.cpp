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
