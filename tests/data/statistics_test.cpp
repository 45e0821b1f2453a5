#include "easydel/data/statistics.h"

#include <gtest/gtest.h>

#include "easydel/text/render_chat.h"
#include "support/data.h"

namespace easydel::data {
namespace {

class Counted : public testing::Test {
 protected:
  Counted() {
    test::write_file(
        folder_ / "a.jsonl",
        "{\"text\": \"abcd\"}\n{\"text\": \"abcd\"}\nnonsense\n{\"text\": \"\"}\n{\"text\": \"abcdefgh\"}\n");
    test::write_file(folder_ / "talk.jsonl",
                     "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": "
                     "\"b\"}]}\n");
    data_.training.emplace();
    for (const char* name : {"a.jsonl", "talk.jsonl"})
      data_.training->informs.emplace_back().data_files = {(folder_ / name).string()};
    data_.packs = true;
    data_.max_length = 8;
    data_.examples_per_update = 3;
    data_.prepare = [](const TypedRow& row) {
      const std::string text = row.conversational ? "ab" : row.text.scalar;
      Prepared out;
      if (!text.empty()) out.example.emplace().add_sequence(std::vector<int32_t>(text.begin(), text.end()));
      return out;
    };
  }
  const test::TemporaryFolder folder_;
  RunData data_;
};

TEST_F(Counted, RowsTokensLengthsRolesAndDuplicates) {
  const Statistics found = statistics_of(data_);
  ASSERT_EQ(found.informs.size(), 2u);
  const InformStatistics& text = found.informs[0];
  EXPECT_EQ(text.rows, 5);
  EXPECT_EQ(text.bad, 1);
  EXPECT_EQ(text.dropped, 1);
  EXPECT_EQ(text.examples, 3);
  EXPECT_EQ(text.tokens, 16);
  EXPECT_EQ(text.learned, 13);
  EXPECT_EQ(text.duplicates, 1);
  EXPECT_EQ(text.lengths, (std::vector<int32_t>{4, 4, 8}));
  EXPECT_EQ(found.informs[1].roles, (std::map<std::string, int64_t>{{"assistant", 1}, {"user", 1}}));
  EXPECT_EQ(found.examples_in_epoch, 4);
  EXPECT_EQ(found.updates_in_epoch, 2);
}

// The template writes "<|im_start|>role\ncontent<|im_end|>\n" for each message; a letter is a token.
TEST_F(Counted, TokensOfEachRole) {
  data_.tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  test::write_file(
      folder_ / "talk.jsonl",
      R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello there"},)"
      R"( {"role": "user", "content": "Bye"}]})"
      "\n"
      R"({"prompt": [{"role": "user", "content": "Hi"}], "chosen": [{"role": "assistant", "content": "Yes"}],)"
      R"( "rejected": [{"role": "assistant", "content": "No"}]})"
      "\n");
  const InformStatistics found = statistics_of(data_).informs.at(1);
  EXPECT_EQ(found.bad, 0);
  EXPECT_EQ(found.untold, 0);
  EXPECT_EQ(found.roles, (std::map<std::string, int64_t>{{"assistant", 3}, {"user", 3}}));
  std::map<std::string, int64_t> expected;
  const text::ChatRenderer renderer(data_.tokenizer);
  const auto rendered = [&](const char* messages) { return int64_t(renderer.ids(parse_json(messages)).size()); };
  const int64_t user = rendered(R"([{"role": "user", "content": "Hi"}])");
  EXPECT_EQ(found.role_tokens.at("user"), 2 * user + rendered(R"([{"role": "user", "content": "Bye"}])"));
  EXPECT_GT(found.role_tokens.at("assistant"), 0);
}

TEST_F(Counted, EachPackingStrategyIsTried) {
  const Statistics found = statistics_of(data_);
  ASSERT_EQ(found.packings.size(), 5u);
  // 4 + 4 + 8 + 2 tokens: three rows of eight, of which the last holds two.
  for (const PackingStatistics& one : found.packings) {
    EXPECT_EQ(one.report.rows, 3) << one.strategy;
    EXPECT_DOUBLE_EQ(one.density, 18.0 / 24) << one.strategy;
  }
  data_.packs = false;
  EXPECT_TRUE(statistics_of(data_).packings.empty());
}

TEST_F(Counted, PercentilesAreLengthsThatOccur) {
  const std::vector<int32_t> lengths{1, 2, 3, 4, 5, 6, 7, 8, 9, 100};
  EXPECT_EQ(percentile(lengths, 0), 1);
  EXPECT_EQ(percentile(lengths, 0.5), 5);
  EXPECT_EQ(percentile(lengths, 0.9), 9);
  EXPECT_EQ(percentile(lengths, 1), 100);
  EXPECT_EQ(percentile({}, 0.5), 0);
}

TEST_F(Counted, ThePictureHasABarForEachLength) {
  const std::string picture = length_picture(statistics_of(data_));
  EXPECT_NE(picture.find("4 to 4: 2"), std::string::npos) << picture;
  EXPECT_NE(picture.find("8 to 8: 1"), std::string::npos) << picture;
  EXPECT_TRUE(picture.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace easydel::data
