#include "easydel/data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "support/data.h"

namespace easydel::data {
namespace {

using Ids = std::vector<int32_t>;

// A text's bytes as tokens, at most eight of them; an empty text has nothing to learn.
Prepared bytes_of(const TypedRow& row) {
  const std::string& text = row.text.scalar;
  if (text == "broken") refuse(row.where, "is broken");
  Prepared out;
  out.cut_tokens = std::max<int64_t>(0, static_cast<int64_t>(text.size()) - 8);
  if (!text.empty())
    out.example.emplace().add_sequence(Ids(text.begin(), text.begin() + long(std::min<size_t>(text.size(), 8))));
  return out;
}

class Datasets : public testing::Test {
 protected:
  Datasets() {
    log::set_sink([this](log::Level, std::string_view line) { log_.append(line) += "\n"; });
  }
  ~Datasets() override { log::set_sink(nullptr); }

  DatasetOptions of(const std::vector<std::string>& texts) {
    DatasetOptions options;
    for (const std::string& text : texts) add(options, text);
    return options;
  }
  // One inform more, with a row a line.
  void add(DatasetOptions& options, const std::string& lines) {
    const auto file = folder_ / str(files_++, ".txt");
    test::write_file(file, lines);
    options.informs.emplace_back().data_files = {file.string()};
  }
  static Ids first_tokens(const Dataset& dataset, int64_t epoch) {
    Ids out;
    for (int64_t i = 0; i < dataset.size(); ++i) out.push_back(dataset.at(dataset.index(epoch, i)).tokens.front());
    return out;
  }

  const test::TemporaryFolder folder_;
  std::string log_;
  int files_ = 0;
};

// Rows before and after a slice are counted as rows, in all files, and are neither read nor prepared.
TEST_F(Datasets, ASliceIsCutOutOfAllFiles) {
  DatasetOptions options = of({"ab\nbroken\n\xff\n"});
  const auto more = folder_ / "more.txt";
  test::write_file(more, "cd\n\nef\nbroken\n");
  options.informs[0].data_files = {options.informs[0].data_files[0], more.string()};
  const auto first = [&](const std::string& split) {
    options.informs[0].split = split;
    const Ids tokens = first_tokens(Dataset::build(options, bytes_of), 0);
    return std::string(tokens.begin(), tokens.end());
  };
  EXPECT_EQ(first("train[3:5]"), "ce");
  EXPECT_EQ(first("train[-3:-1]"), "ce");
  EXPECT_EQ(first("train[50%:66%]"), "c");
  EXPECT_EQ(first("train[4:5]+train[:1]"), "ea");
  EXPECT_EQ(test::replaced(test::refusal([&] { first("train[7:9]"); }), folder_.path().string(), "DIR"),
            "mixture.informs[0].split: the slice of 'train' is empty: there are 6 rows\n    choose other boundaries");
  // Paragraphs are given, not passed over.
  options.informs[0].sample_by = SampleBy::paragraph;
  options.informs[0].data_files = {more.string()};
  EXPECT_EQ(first("train[:1]"), "c");
  EXPECT_EQ(first("train[-1:]"), "e");
}

TEST_F(Datasets, HaveTheRowsOfTheirFilesInOrder) {
  const Dataset dataset = Dataset::build(of({"abc\nd\nef\n"}), bytes_of);
  EXPECT_EQ(dataset.size(), 3);
  EXPECT_EQ(first_tokens(dataset, 0), (Ids{'a', 'd', 'e'}));
  EXPECT_EQ(dataset.tokens(), 6);
  EXPECT_EQ(dataset.labels(), 3) << "the last token of each has no label";
  EXPECT_EQ(dataset.longest(), 3);
  EXPECT_NE(log_.find("mixture.informs[0]: 3 rows of text"), std::string::npos) << log_;
}

TEST_F(Datasets, TakeAsManyRowsAsAreAskedFor) {
  DatasetOptions options = of({"a\nb\nc\nd\n", "e\nf\n"});
  options.informs[0].num_rows = 3;
  EXPECT_EQ(first_tokens(Dataset::build(options, bytes_of), 0), (Ids{'a', 'b', 'c', 'e', 'f'}));
}

TEST_F(Datasets, CountWhatIsCutAndDropped) {
  DatasetOptions options = of({});
  const auto file = folder_ / "rows.jsonl";
  test::write_file(file, "{\"text\": \"0123456789\"}\n{\"text\": \"\"}\n{\"text\": \"a\"}\n");
  options.informs.emplace_back().data_files = {file.string()};
  const Dataset dataset = Dataset::build(options, bytes_of);
  EXPECT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.report().rows, 3);
  EXPECT_EQ(dataset.report().dropped, 1);
  EXPECT_EQ(dataset.report().cut_rows, 1);
  EXPECT_EQ(dataset.report().cut_tokens, 2);
  EXPECT_NE(log_.find("1 of 3 rows was longer than max_length and lost 2 tokens"), std::string::npos) << log_;
  EXPECT_NE(log_.find("1 of 3 rows has no tokens to train on and was dropped"), std::string::npos) << log_;
}

// Rows are prepared by several threads; of several broken rows the first is named.
TEST_F(Datasets, NameTheFirstBrokenRow) {
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += i == 70 || i == 150 ? "broken\n" : "a\n";
  const DatasetOptions options = of({lines});
  EXPECT_EQ(test::refusal([&] { Dataset::build(options, bytes_of); }), (folder_ / "0.txt").string() + ":71: is broken");
}

TEST_F(Datasets, AreShuffledByTheSeedAlone) {
  DatasetOptions options = of({"a\nb\nc\nd\ne\nf\ng\nh\n"});
  options.shuffled = true;
  const Ids first = first_tokens(Dataset::build(options, bytes_of), 0);
  EXPECT_EQ(first_tokens(Dataset::build(options, bytes_of), 0), first);
  EXPECT_NE(first_tokens(Dataset::build(options, bytes_of), 1), first);
  options.seed = 1;
  EXPECT_NE(first_tokens(Dataset::build(options, bytes_of), 0), first);
}

TEST_F(Datasets, ArePackedIntoRows) {
  DatasetOptions options = of({"abc\nde\nfgh\n"});
  options.packing = Packing::bfd;
  options.row_length = 5;
  const Dataset dataset = Dataset::build(options, bytes_of);
  EXPECT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.longest(), 5);
  EXPECT_EQ(dataset.tokens(), 8);
}

TEST_F(Datasets, OfEqualExamplesHaveEqualFingerprints) {
  const auto fingerprint = [&](const std::string& lines) {
    return Dataset::build(of({lines}), bytes_of).fingerprint();
  };
  EXPECT_EQ(fingerprint("abc\nd\n"), fingerprint("abc\nd\n"));
  EXPECT_NE(fingerprint("abc\nd\n"), fingerprint("abc\ne\n"));
  EXPECT_NE(fingerprint("abc\nd\n"), fingerprint("ab\ncd\n")) << "the same tokens, cut elsewhere";
}

TEST_F(Datasets, OfPairsWithoutAPromptSayWhatTheirPromptIs) {
  const auto build = [&](const std::string& row) {
    log_.clear();
    test::write_file(folder_ / "pairs.jsonl", row + row);
    DatasetOptions options;
    options.informs.emplace_back().data_files = {(folder_ / "pairs.jsonl").string()};
    Dataset::build(options, [](const TypedRow& pair) {
      Prepared out;
      out.example.emplace().add_sequence(Ids(pair.chosen.scalar.begin(), pair.chosen.scalar.end()));
      return out;
    });
    return log_;
  };
  const std::string pair = "\"chosen\": \"it is blue\", \"rejected\": \"it is red\"}\n";
  const std::string told =
      "mixture.informs[0]: 2 rows without a prompt; what chosen and rejected begin with is taken as the prompt";
  EXPECT_NE(build("{" + pair).find(told + "\n"), std::string::npos) << log_;
  EXPECT_NE(build("{\"question\": \"what is it?\", \"id\": 3, " + pair)
                .find(told + "; not used: question (content_field: question would make it the prompt)\n"),
            std::string::npos)
      << log_;
  EXPECT_EQ(build("{\"prompt\": \"what is it?\", " + pair).find("without a prompt"), std::string::npos) << log_;
}

TEST_F(Datasets, FirstRowsAreCheckedWithoutTheRest) {
  std::string late;
  for (int i = 0; i < 200; ++i) late += i == 100 ? "broken\n" : "a\n";
  EXPECT_NO_THROW(check_first_rows(of({late}), bytes_of));
  EXPECT_EQ(test::refusal([&] {
              check_first_rows(of({"a\n", "a\nbroken\n"}), bytes_of);
            }),
            (folder_ / "2.txt").string() + ":2: is broken");
  EXPECT_EQ(test::refusal([&] { check_first_rows(of({""}), bytes_of); }),
            test::refusal([&] { Dataset::build(of({""}), bytes_of); }));
  EXPECT_EQ(log_, "");
}

TEST_F(Datasets, RefuseToBeEmptyOrUnknown) {
  EXPECT_EQ(test::refusal([&] { Dataset::build(of({""}), bytes_of); }),
            "mixture.informs: there is nothing to train on in 0 rows\n    give at least one row with a text, a "
            "conversation or an answer");
  test::write_file(folder_ / "a.bin", "x");
  DatasetOptions options;
  options.informs.emplace_back().data_files = {(folder_ / "a.bin").string()};
  EXPECT_EQ(
      test::refusal([&] { Dataset::build(options, bytes_of); }),
      "mixture.informs[0].data_files: the ending of '" + (folder_ / "a.bin").string() +
          "' does not tell its type\n    give its type: arrow, csv, json, jsonl, parquet, tsv, txt or webdataset");
}

}  // namespace
}  // namespace easydel::data
