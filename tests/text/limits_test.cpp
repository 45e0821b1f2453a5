#include "easydel/text/tokenizers/limits.h"

#include <gtest/gtest.h>

#include "easydel/text/tokenizers/post_processors.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "support/data.h"

namespace easydel::text {
namespace {

using test::refusal;
using Ids = std::vector<TokenId>;

Encoding numbered(int first, int count) {
  Encoding out;
  for (int i = 0; i < count; ++i) {
    out.ids.push_back(first + i);
    out.tokens.push_back("x");
    out.offsets.emplace_back(i, i + 1);
    out.special_tokens_mask.push_back(0);
    out.type_ids.push_back(0);
  }
  return out;
}

std::pair<Ids, Ids> cut(Truncation how, int first, int second, int added = 0) {
  std::vector<Encoding> parts = {numbered(0, first), numbered(100, second)};
  how.apply(parts, added);
  return {parts[0].ids, parts[1].ids};
}

TEST(Limits, TheLongerOfTwoTextsIsCutFirst) {
  EXPECT_EQ(cut({.max_length = 6}, 2, 8), (std::pair<Ids, Ids>({0, 1}, {100, 101, 102, 103})));
  EXPECT_EQ(cut({.max_length = 6}, 8, 2), (std::pair<Ids, Ids>({0, 1, 2, 3}, {100, 101})));
  EXPECT_EQ(cut({.max_length = 5}, 8, 9), (std::pair<Ids, Ids>({0, 1}, {100, 101, 102})));
  EXPECT_EQ(cut({.max_length = 8}, 8, 9, 3), (std::pair<Ids, Ids>({0, 1}, {100, 101, 102})));
  EXPECT_EQ(cut({.max_length = 17}, 8, 9), (std::pair<Ids, Ids>({numbered(0, 8).ids}, {numbered(100, 9).ids})));
  EXPECT_EQ(cut({.max_length = 3}, 8, 9, 3), (std::pair<Ids, Ids>()));
}

TEST(Limits, OneSideAloneIsCutWhereTheStrategySaysSo) {
  Truncation first{.max_length = 6, .strategy = Truncation::Strategy::only_first, .direction = Side::left};
  EXPECT_EQ(cut(first, 8, 3), (std::pair<Ids, Ids>({5, 6, 7}, {100, 101, 102})));
  Truncation second{.max_length = 6, .strategy = Truncation::Strategy::only_second};
  EXPECT_EQ(cut(second, 4, 3), (std::pair<Ids, Ids>({0, 1, 2, 3}, {100, 101})));
  EXPECT_EQ(refusal([&] { cut(second, 7, 3); }),
            "tokenizer.json: a text is too short to bring 10 tokens down to 6\n    raise truncation.max_length");
  std::vector<Encoding> alone = {numbered(0, 9)};
  EXPECT_EQ(refusal([&] { second.apply(alone, 0); }),
            "tokenizer.json: truncation is for the second text, and there is none\n    give a pair, or change "
            "truncation.strategy");
  EXPECT_EQ(refusal([&] { cut({.max_length = 4, .stride = 4}, 9, 0); }),
            "tokenizer.json: the stride 4 is not less than the 4 tokens that there is room for\n    lower "
            "truncation.stride");
}

// Figures of the tokenizers package 0.23.
TEST(Limits, WhatIsCutOffIsKeptInPartsThatOverlapByTheStride) {
  auto parts = [](Truncation how, int count) {
    std::vector<Encoding> one = {numbered(0, count)};
    how.apply(one, 0);
    std::vector<Ids> out = {one[0].ids};
    for (const Encoding& rest : one[0].overflowing) out.push_back(rest.ids);
    return out;
  };
  using Rows = std::vector<Ids>;
  EXPECT_EQ(parts({.max_length = 5, .stride = 1}, 7), (Rows{{0, 1, 2, 3, 4}, {4, 5, 6}}));
  EXPECT_EQ(parts({.max_length = 3, .stride = 0}, 7), (Rows{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(parts({.max_length = 3, .stride = 2}, 5), (Rows{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}}));
  EXPECT_EQ(parts({.max_length = 5, .stride = 1, .direction = Side::left}, 7), (Rows{{2, 3, 4, 5, 6}, {0, 1, 2}}));
  EXPECT_EQ(parts({.max_length = 0}, 2), (Rows{{}, {0, 1}}));
  std::vector<Encoding> pair = {numbered(0, 3), numbered(10, 3)};
  Truncation{.max_length = 4}.apply(pair, 0);
  Encoding both = joined(std::move(pair));
  EXPECT_EQ(both.ids, (Ids{0, 1, 10, 11}));
  std::vector<Ids> rest;
  for (const Encoding& each : both.overflowing) rest.push_back(each.ids);
  EXPECT_EQ(rest, (Rows{{2, 10, 11}, {2, 12}, {0, 1, 12}}));
}

// Each Replace doubles a text: 26 of them would make 64 MiB of a letter.
TEST(Limits, ANormalizerMayNotMakeATextLongerAndLonger) {
  const auto replacements = [](int count) {
    Value document = parse_json(R"({"added_tokens": [], "model": {"type": "WordLevel", "vocab": {"[UNK]": 0},)"
                                R"( "unk_token": "[UNK]"}, "normalizer": {"type": "Sequence", "normalizers": []}})");
    for (int i = 0; i < count; ++i)
      document.find("normalizer")
          ->find("normalizers")
          ->items.push_back(parse_json(R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})"));
    const test::TemporaryFolder folder;
    test::write_file(folder / "tokenizer.json", to_json(document));
    return Tokenizer::load(folder.path());
  };
  EXPECT_EQ(replacements(10)->encode("a"), (std::vector<TokenId>{0}));
  EXPECT_EQ(
      refusal([&] { replacements(26)->encode("a"); }),
      "tokenizer.json: its normalizer makes more than 1048832 bytes of this text\n    a Replace in it makes texts "
      "longer and longer; fetch the tokenizer again");
}

TEST(Limits, PaddingReachesALengthAndAMultiple) {
  Padding padding{.length = 3, .multiple_of = 4, .direction = Side::left, .id = 9, .type = 1, .token = "[P]"};
  Encoding encoding = numbered(0, 2);
  padding.apply(encoding);
  EXPECT_EQ(encoding.ids, (Ids{9, 9, 0, 1}));
  EXPECT_EQ(encoding.special_tokens_mask, (std::vector<uint8_t>{1, 1, 0, 0}));
  EXPECT_EQ(encoding.type_ids, (std::vector<uint8_t>{1, 1, 0, 0}));
  EXPECT_EQ(encoding.tokens[1], "[P]");
  Padding longest;
  longest.multiple_of = 3;
  encoding = numbered(0, 4);
  longest.apply(encoding);
  EXPECT_EQ(encoding.ids, (Ids{0, 1, 2, 3, 0, 0}));
}

TEST(Limits, AreAppliedOnlyWhereAskedFor) {
  test::TemporaryFolder folder;
  test::write_file(folder / "tokenizer.json", R"({
    "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
    "padding": {"strategy": {"Fixed": 4}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 7, "pad_type_id": 0,
                "pad_token": "p"},
    "pre_tokenizer": {"type": "WhitespaceSplit"},
    "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "c": 2}, "unk_token": "a"}})");
  auto tokenizer = Tokenizer::load(folder / "tokenizer.json");
  EXPECT_EQ(tokenizer->encode("a b c"), (Ids{0, 1, 2}));
  EXPECT_EQ(tokenizer->encode("a b c", {.file_limits = true}), (Ids{0, 1, 7, 7}));
  test::write_file(folder / "tokenizer.json",
                   R"({"truncation": {"max_length": 2, "strategy": "Both", "stride": 0}, "model": {}})");
  EXPECT_EQ(
      test::replaced(refusal([&] { Tokenizer::load(folder / "tokenizer.json"); }), folder.path().string(), "F"),
      "F/tokenizer.json: the truncation strategy 'Both' is not known\n    known: LongestFirst, OnlyFirst, OnlySecond");
}

}  // namespace
}  // namespace easydel::text
