#include "easydel/data/token_rows.h"

#include <gtest/gtest.h>

#include "easydel/data/row_kinds.h"
#include "support/data.h"

namespace easydel::data {
namespace {

using Ids = std::vector<int32_t>;

TokenRow tokens_of(const std::string& json) { return token_row({parse_json(json), "rows.jsonl:7"}, "input_ids"); }

TEST(TokenRows, MasksAreJoined) {
  const TokenRow row = tokens_of(R"({"input_ids": [1, 2, 3, 4], "labels": [-100, 2, 3, 4],
      "completion_mask": [1, 1, 1, 0], "assistant_masks": [0, 1, 0, 1], "weights": [1, 0.5, 2, 1]})");
  EXPECT_EQ(row.ids, (Ids{1, 2, 3, 4}));
  EXPECT_EQ(row.labels, (Ids{-100, 2, -100, -100}));
  EXPECT_EQ(row.weights, (std::vector<float>{1, 0.5, 2, 1}));
  EXPECT_TRUE(tokens_of(R"({"input_ids": [1]})").labels.empty());
}

TEST(TokenRows, PaddingIsLeftOut) {
  const TokenRow row = tokens_of(R"({"input_ids": [0, 5, 6, 0], "labels": [-100, 5, 6, -100],
      "attention_mask": [0, 1, 1, 0]})");
  EXPECT_EQ(row.ids, (Ids{5, 6}));
  EXPECT_EQ(row.labels, (Ids{5, 6}));
}

TEST(TokenRows, BadNumbersAreRefused) {
  const auto told = [](const std::string& json) { return test::refusal([&] { tokens_of(json); }); };
  EXPECT_EQ(told(R"({"input_ids": [1, -2]})"), "rows.jsonl:7: field 'input_ids' holds -2, which is not a token id");
  EXPECT_EQ(told(R"({"input_ids": [1, 2.5]})"), "rows.jsonl:7: field 'input_ids' holds 2.5, which is not a token id");
  EXPECT_EQ(told(R"({"input_ids": [1, 2], "labels": [1]})"),
            "rows.jsonl:7: 'labels' has 1 numbers for 2 tokens\n    give one for each token");
  EXPECT_EQ(told(R"({"input_ids": [1, 2], "completion_mask": [1, 2]})"),
            "rows.jsonl:7: field 'completion_mask' holds 2, which is neither 0 nor 1");
  EXPECT_EQ(told(R"({"input_ids": [1], "weights": [-1]})"),
            "rows.jsonl:7: field 'weights' holds -1, which is not a weight from 0");
  EXPECT_EQ(told(R"({"input_ids": [1, 2], "seq_lengths": [3]})"),
            "rows.jsonl:7: 'seq_lengths' do not add up to the row's 2 tokens");
}

TEST(TokenRows, AreDetectedByTheirNumbers) {
  const auto kind = [](const std::string& json, const FieldRules& rules = {}) {
    return typed({parse_json(json), "rows.jsonl:7"}, rules).kind;
  };
  EXPECT_EQ(kind(R"({"input_ids": [1, 2]})"), RowKind::tokens);
  EXPECT_EQ(kind(R"({"tokens": [1, 2]})"), RowKind::tokens);
  EXPECT_EQ(kind(R"({"text": "a", "input_ids": [1]})"), RowKind::text) << "a text is tokenized here";
  FieldRules rules;
  rules.kind = RowKind::tokens;
  rules.tokens_field = "ids";
  EXPECT_EQ(kind(R"({"text": "a", "ids": [1]})", rules), RowKind::tokens);
  EXPECT_NE(test::refusal([&] { kind(R"({"text": "a"})", rules); }).find("the row has no field 'ids'; it has: text"),
            std::string::npos);
}

}  // namespace
}  // namespace easydel::data
