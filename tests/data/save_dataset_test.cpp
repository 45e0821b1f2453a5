#include "easydel/data/save_dataset.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::data {
namespace {

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
    for (const auto& file : save_dataset("mixture.save", dataset, mixture, "sft"))
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
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out")) files += entry.is_regular_file();
  EXPECT_EQ(files, 2);
}

TEST_F(SaveDataset, SaysWhereAPackedRowsDocumentsEnd) {
  MixtureConfig packed = mixture("format: jsonl");
  packed.tokenization.return_attention_mask = false;
  EXPECT_EQ(saved(dataset(Packing::first_fit), packed),
            (Files{"train-00000-of-00001.jsonl: {\"tokens\": [0, 1, 2, 3, 4], \"seq_lengths\": [3, 2]}\n"
                   "{\"tokens\": [1, 0, 3, 0, 1], \"seq_lengths\": [3, 2]}\n"}));
}

TEST_F(SaveDataset, IsReadAgainByThisProgram) {
  const auto files = save_dataset("mixture.save", dataset(), mixture("format: jsonl"), "sft");
  int rows = 0;
  source_of_file(files.at(0))->read(files[0], {}, [&](Row row) {
    return rows += row.fields.find("tokens")->is_list(), true;
  });
  EXPECT_EQ(rows, 4);
}

TEST_F(SaveDataset, RefusesWhatItCannotSave) {
  const Dataset data = dataset();
  const auto refused = [&](const std::string& save, const std::string& method) {
    return test::replaced(test::refusal([&] { save_dataset("mixture.save", data, mixture(save), method); }),
                          folder_.path().string(), "DIR");
  };
  EXPECT_EQ(refused("format: jsonl", "dpo"),
            "mixture.save: saving what dpo learns from is not built yet\n    leave the section out");
  EXPECT_EQ(refused("overwrite: true", "sft"),
            "mixture.save.format: writing parquet is not built yet\n    use jsonl or json");
  EXPECT_EQ(refused("format: arrow", "sft"),
            "mixture.save.format: writing arrow is not built yet\n    use jsonl or json");
  test::write_file(folder_ / "out/mine.txt", "");
  EXPECT_EQ(refused("format: jsonl", "sft"),
            "mixture.save.output_path: 'DIR/out' is there already\n    set overwrite: true, or name another folder");
  EXPECT_TRUE(
      refused("format: jsonl, overwrite: true, push_to_hub: true, hub_repo_id: no/name/at/all, hub_token: t", "sft")
          .starts_with("mixture.save.push_to_hub: "));
}

}  // namespace
}  // namespace easydel::data
