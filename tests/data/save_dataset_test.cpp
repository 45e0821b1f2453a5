#include "easydel/data/save_dataset.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "easydel/base/files.h"
#include "easydel/data/columnar.h"
#include "support/data.h"

namespace easydel::data {
namespace {

const SavedExamples texts{"sft", sequence_columns}, pairs_of_answers{"dpo", pair_columns};

// A token for each letter of the row.
Prepared letters(const TypedRow& row) {
  std::vector<int32_t> ids;
  for (const char c : row.text.scalar) ids.push_back(c - 'a');
  Prepared out;
  out.example.emplace().add_sequence(ids);
  return out;
}

class SaveDataset : public testing::Test {
 protected:
  Dataset dataset(Packing packing = Packing::none) const {
    test::write_file(folder_ / "rows.txt", "abc\nde\nbad\nab\n");
    DatasetOptions options;
    options.informs.emplace_back().data_files = {(folder_ / "rows.txt").string()};
    options.packing = packing;
    options.row_length = 5;
    return Dataset::build(options, letters);
  }
  MixtureConfig mixture(const std::string& save) const {
    MixtureConfig out;
    config::read(parse_yaml("{save: {path: " + (folder_ / "out").string() + ", " + save + "}}"), out, "mixture")
        .throw_if_any();
    return out;
  }
  std::vector<std::string> saved(const Dataset& dataset, const MixtureConfig& mixture) const {
    std::vector<std::string> out;
    for (const auto& file : save_dataset("mixture.save", dataset, mixture, texts))
      out.push_back(file.filename().string() + ": " + test::read_file(file));
    return out;
  }
  test::TemporaryFolder folder_;
};

using Files = std::vector<std::string>;

TEST_F(SaveDataset, WritesARowALine) {
  EXPECT_EQ(
      saved(dataset(), mixture("format: jsonl")),
      (Files{
          "train-00000-of-00001.jsonl: {\"tokens\": [0, 1, 2], \"attention_mask\": [1, 1, 1]}\n"
          "{\"tokens\": [3, 4], \"attention_mask\": [1, 1]}\n{\"tokens\": [1, 0, 3], \"attention_mask\": [1, 1, 1]}\n"
          "{\"tokens\": [0, 1], \"attention_mask\": [1, 1]}\n"}));
}

TEST_F(SaveDataset, DescribesItsColumns) {
  saved(dataset(), mixture("format: jsonl"));
  const Value info = parse_file(folder_ / "out/dataset_info.json");
  EXPECT_EQ(to_json(*info.find("features")),
            R"({"tokens": {"feature": {"dtype": "int32", "_type": "Value"}, "_type": "Sequence"}, )"
            R"("attention_mask": {"feature": {"dtype": "int32", "_type": "Value"}, "_type": "Sequence"}})");
  EXPECT_EQ(to_json(*info.find("splits")), R"({"train": {"name": "train", "num_examples": 4}})");
}

TEST_F(SaveDataset, CutsItByCountOrBySize) {
  MixtureConfig by_count = mixture("format: json, num_shards: 3");
  by_count.tokenization.return_attention_mask = false;
  by_count.tokenization.output_field = "ids";
  const Files three{"train-00000-of-00003.json: [{\"ids\": [0, 1, 2]}]\n",
                    "train-00001-of-00003.json: [{\"ids\": [3, 4]}]\n",
                    "train-00002-of-00003.json: [{\"ids\": [1, 0, 3]},\n{\"ids\": [0, 1]}]\n"};
  EXPECT_EQ(saved(dataset(), by_count), three);
  MixtureConfig by_size = mixture("format: json, max_shard_size: 40, overwrite: true");
  by_size.tokenization = by_count.tokenization;
  EXPECT_EQ(saved(dataset(), by_size).size(), 2u);
  int files = 0;  // those of the first are gone
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out"))
    files += !entry.path().filename().string().starts_with('.');
  EXPECT_EQ(files, 3) << "dataset_info.json is the third";
}

TEST_F(SaveDataset, SaysWhereAPackedRowsDocumentsEnd) {
  MixtureConfig packed = mixture("format: jsonl");
  packed.tokenization.return_attention_mask = false;
  EXPECT_EQ(saved(dataset(Packing::first_fit), packed),
            (Files{"train-00000-of-00001.jsonl: {\"tokens\": [0, 1, 2, 3, 4], \"seq_lengths\": [3, 2]}\n"
                   "{\"tokens\": [1, 0, 3, 0, 1], \"seq_lengths\": [3, 2]}\n"}));
}

TEST_F(SaveDataset, IsReadAgainByThisProgram) {
  const auto files = save_dataset("mixture.save", dataset(), mixture("format: jsonl"), texts);
  int rows = 0;
  source_of_file(files.at(0))->read(files[0], {}, [&](Row row) {
    return rows += row.fields.find("tokens")->is_list(), true;
  });
  EXPECT_EQ(rows, 4);
}

// What is in each row of the files, whatever their form.
std::vector<std::string> rows_of(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> out;
  for (const auto& file : files)
    source_of_file(file)->read(file, {}, [&](const Row& row) { return out.push_back(to_json(row.fields)), true; });
  return out;
}

TEST_F(SaveDataset, FilesOfColumnsHoldTheSameRows) {
  if (!columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  const Dataset data = dataset(Packing::first_fit);
  const auto save = [&](const std::string& keys) {
    return rows_of(save_dataset("mixture.save", data, mixture(keys + ", overwrite: true"), texts));
  };
  const auto want = save("format: jsonl");
  EXPECT_EQ(want.at(0), R"({"tokens": [0, 1, 2, 3, 4], "attention_mask": [1, 1, 1, 1, 1], "seq_lengths": [3, 2]})");
  for (const char* keys : {"format: parquet", "compression: gzip", "compression: zstd", "compression: lz4",
                           "compression: brotli", "compression: none", "format: arrow", "format: arrow, num_shards: 2"})
    EXPECT_EQ(save(keys), want) << keys;
  // The folder is one of `datasets`, and nothing else is left in it but the record of what was saved.
  EXPECT_EQ(rows_of(expand(std::vector{(folder_ / "out").string()}, "data_files")), want);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "out"), {}), 5);
}

// A prompt of one letter and two answers.
Prepared pair_of(const TypedRow& row) {
  std::vector<int32_t> ids;
  for (const char c : row.text.scalar) ids.push_back(c - 'a');
  Prepared out;
  Example& example = out.example.emplace();
  for (size_t longer : {0u, 1u}) {
    ids.resize(ids.size() - longer);
    std::vector<uint8_t> learn(ids.size(), 1);
    learn[0] = 0;
    example.add_sequence(ids, learn);
  }
  return out;
}

TEST_F(SaveDataset, PairsAreAPromptAndTwoAnswers) {
  test::write_file(folder_ / "pairs.txt", "abcd\nefg\n");
  DatasetOptions options;
  options.informs.emplace_back().data_files = {(folder_ / "pairs.txt").string()};
  const Dataset pairs = Dataset::build(options, pair_of);
  const std::vector<std::string> want{R"({"prompt_ids": [0], "chosen_ids": [1, 2, 3], "rejected_ids": [1, 2]})",
                                      R"({"prompt_ids": [4], "chosen_ids": [5, 6], "rejected_ids": [5]})"};
  EXPECT_EQ(rows_of(save_dataset("mixture.save", pairs, mixture("format: jsonl"), pairs_of_answers)), want);
  if (!columnar_library_is_there()) return;
  EXPECT_EQ(rows_of(save_dataset("mixture.save", pairs, mixture("overwrite: true"), pairs_of_answers)), want);
}

TEST_F(SaveDataset, AnEndThatCannotBeWrittenLeavesNoFile) {
  if (!columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  const Dataset data = dataset();
  files::set_fault([](files::Operation operation, const files::fs::path& path) {
    return operation == files::Operation::fsync && path.string().find("parquet") != std::string::npos ? ENOSPC : 0;
  });
  const std::string text =
      test::refusal([&] { save_dataset("mixture.save", data, mixture("format: parquet"), texts); });
  files::set_fault(nullptr);
  EXPECT_NE(text.find("No space left on device"), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(SaveDataset, TheSameRowsAreLeftAlone) {
  const Dataset data = dataset();
  const MixtureConfig first = mixture("format: jsonl");
  const auto file = saved(data, first).empty() ? "" : folder_ / "out/train-00000-of-00001.jsonl";
  const auto written = std::filesystem::last_write_time(file);
  saved(data, first);  // as a run does that is started again
  EXPECT_EQ(std::filesystem::last_write_time(file), written);

  const auto again = [&](const std::string& save) {
    return test::replaced(test::refusal([&] { saved(data, mixture(save)); }), folder_.path().string(), "DIR");
  };
  EXPECT_EQ(again("format: json"),
            "mixture.save.output_path: 'DIR/out' already exists and holds other data\n    set overwrite: true, or name "
            "another folder");
  test::write_file(file, "damaged");
  EXPECT_NE(again("format: jsonl").find("holds other data"), std::string::npos);
  EXPECT_EQ(saved(data, mixture("format: jsonl, overwrite: true")).at(0).substr(0, 40),
            "train-00000-of-00001.jsonl: {\"tokens\": [");
}

// The disk fails at the n-th operation, for every n: the folder holds the old rows or the new ones, whole, and the next
// save ends with the new ones. What else is in the folder stays.
TEST_F(SaveDataset, AReplacementIsWholeOrNotThere) {
  const Dataset data = dataset();
  const auto names = [&] {
    std::set<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out"))
      if (!entry.path().filename().string().starts_with('.')) out.insert(entry.path().filename().string());
    return out;
  };
  const std::set<std::string> old{"dataset_info.json", "mine.txt", "train-00000-of-00002.jsonl",
                                  "train-00001-of-00002.jsonl"},
      fresh{"dataset_info.json", "mine.txt", "train-00000-of-00003.jsonl", "train-00001-of-00003.jsonl",
            "train-00002-of-00003.jsonl"};
  const std::string wanted = "format: jsonl, overwrite: true, num_shards: 3";
  int failures = 0;
  for (int n = 1;; ++n) {
    std::filesystem::remove_all(folder_ / "out");
    saved(data, mixture("format: jsonl, num_shards: 2"));
    test::write_file(folder_ / "out/mine.txt", "");
    int count = 0;
    files::set_fault([&](files::Operation, const files::fs::path&) { return ++count == n ? EIO : 0; });
    const std::string refused = test::refusal([&] { saved(data, mixture(wanted)); });
    files::set_fault(nullptr);
    failures += refused != "(nothing was refused)";
    if (std::filesystem::exists(folder_ / "out/mine.txt")) {
      const auto now = names();
      EXPECT_TRUE(now == old || now == fresh) << "after a failure at operation " << n;
    }
    EXPECT_EQ(saved(data, mixture(wanted)).size(), 3u);
    EXPECT_EQ(names(), fresh) << "after a failure at operation " << n;
    EXPECT_FALSE(std::filesystem::exists(folder_ / ".out.old"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / ".out.partial"));
    if (count < n) break;  // the whole save went through
  }
  EXPECT_GT(failures, 20);
}

TEST_F(SaveDataset, RefusesWhatItCannotSave) {
  const Dataset data = dataset();
  const auto refused = [&](const std::string& save, const SavedExamples& method) {
    return test::replaced(test::refusal([&] { save_dataset("mixture.save", data, mixture(save), method); }),
                          folder_.path().string(), "DIR");
  };
  EXPECT_EQ(
      refused("format: jsonl", {"grpo", {}}),
      "mixture.save: saving what grpo learns from is not built yet\n    set what: rows, or leave the section out");
  test::write_file(folder_ / "out/mine.txt", "");
  EXPECT_EQ(refused("format: jsonl", texts),
            "mixture.save.output_path: 'DIR/out' already exists\n    set overwrite: true, or name another folder");
  EXPECT_TRUE(
      refused("format: jsonl, overwrite: true, push_to_hub: true, hub_repo_id: no/name/at/all, hub_token: t", texts)
          .starts_with("mixture.save.push_to_hub: "));
}

}  // namespace
}  // namespace easydel::data
