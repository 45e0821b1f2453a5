#include "easydel/data/row_words.h"

#include <gtest/gtest.h>

#include "easydel/base/log.h"
#include "easydel/data/dataset.h"
#include "support/data.h"

namespace easydel::data {
namespace {

TypedRow row(const std::string& json) { return typed({parse_json(json), "rows.jsonl:7"}, {}); }

TEST(RowWords, AreThoseOfAllTexts) {
  EXPECT_EQ(words_of(row(R"({"text": "One, two -- THREE 4!"})")),
            (std::vector<std::string>{"one", "two", "three", "4"}));
  EXPECT_EQ(words_of(row(R"({"messages": [{"role": "user", "content": "Hello you"},
                             {"role": "assistant", "content": [{"type": "text", "text": "Good day"}]}]})")),
            (std::vector<std::string>{"hello", "you", "good", "day"}))
      << "roles and types are no words";
  EXPECT_EQ(digest_of_words(row(R"({"text": "A b  C"})")), digest_of_words(row(R"({"text": "a B, c."})")));
  EXPECT_NE(digest_of_words(row(R"({"text": "ab c"})")), digest_of_words(row(R"({"text": "a bc"})")));
}

TEST(RowWords, RunsAreSharedIfAllTheirWordsAre) {
  WordRuns runs(3);
  runs.add(row(R"({"text": "the cat sat on the mat"})"));
  EXPECT_EQ(runs.size(), 4u);
  EXPECT_TRUE(runs.shares(row(R"({"prompt": "Where?", "completion": " It SAT on THE floor"})")));
  EXPECT_FALSE(runs.shares(row(R"({"text": "mat the on sat cat the"})")));
  EXPECT_FALSE(runs.shares(row(R"({"text": "the cat"})"))) << "shorter than a run";
}

class RepeatedRows : public testing::Test {
 protected:
  RepeatedRows() {
    log::set_sink([this](log::Level, std::string_view line) { log_.append(line) += "\n"; });
    test::write_file(folder_ / "a.txt", "The cat sat on the mat\nthe cat sat on the mat!\nanother line\n");
    test::write_file(folder_ / "b.txt", "a cat\nAnother line\n");
    test::write_file(folder_ / "held_out.txt", "who saw the cat sat on the roof\n");
    for (const char* name : {"a.txt", "b.txt"})
      options_.informs.emplace_back().data_files = {(folder_ / name).string()};
  }
  ~RepeatedRows() override { log::set_sink(nullptr); }
  int64_t rows() {
    return Dataset::build(options_,
                          [](const TypedRow& one) {
                            Prepared out;
                            out.example.emplace().add_sequence(
                                std::vector<int32_t>(one.text.scalar.begin(), one.text.scalar.end()));
                            return out;
                          })
        .size();
  }
  const test::TemporaryFolder folder_;
  DatasetOptions options_;
  std::string log_;
};

TEST_F(RepeatedRows, AreLeftOutIfAskedFor) {
  EXPECT_EQ(rows(), 5);
  options_.deduplicate = true;
  EXPECT_EQ(rows(), 3) << "also copies in another inform";
  EXPECT_NE(log_.find("mixture.informs: 2 rows are copies of earlier ones and were left out"), std::string::npos)
      << log_;
}

TEST_F(RepeatedRows, OfTheEvaluationAreReportedOrDropped) {
  options_.decontamination = {4, false, {}};
  options_.decontamination->against.emplace_back().data_files = {(folder_ / "held_out.txt").string()};
  EXPECT_EQ(rows(), 5);
  EXPECT_NE(log_.find("2 rows share 4 words in a row with evaluation data"), std::string::npos) << log_;
  options_.decontamination->drop = true;
  EXPECT_EQ(rows(), 3);
  EXPECT_NE(log_.find("with evaluation data and were left out"), std::string::npos) << log_;
}

}  // namespace
}  // namespace easydel::data
