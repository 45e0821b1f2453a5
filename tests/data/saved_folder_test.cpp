#include "easydel/data/saved_folder.h"

#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "support/data.h"

namespace easydel::data {
namespace {

SaveConfig section(const std::string& keys) {
  SaveConfig out;
  config::read(parse_yaml("{path: out, " + keys + "}"), out, "mixture.save").throw_if_any();
  return out;
}

std::vector<int64_t> cuts(const std::string& keys, const std::vector<int64_t>& bytes) {
  FileCuts out(section(keys));
  for (const int64_t row : bytes) out.add_row(row);
  return out.cuts();
}

using Rows = std::vector<int64_t>;

TEST(FileCuts, AreBySizeOrByCount) {
  EXPECT_EQ(cuts("max_shard_size: 10", {4, 6, 1, 20, 3, 3}), (Rows{0, 2, 3, 4, 6}));
  EXPECT_EQ(cuts("max_shard_size: 10", {30}), (Rows{0, 1}));
  EXPECT_EQ(cuts("max_shard_size: 10, num_shards: 3", {9, 9, 9, 9}), (Rows{0, 1, 2, 4}));
  EXPECT_EQ(cuts("num_shards: 3", {1, 1}), (Rows{0, 1, 2}));
  EXPECT_EQ(cuts("max_shard_size: 10", {}), (Rows{0, 0}));
}

TEST(SavedFolder, HasItsFilesAndWhatTheyAre) {
  const test::TemporaryFolder folder;
  SaveConfig save = section("format: jsonl, num_shards: 2");
  save.output_path = (folder / "out").string();
  SavedContent content{{0, 1, 2}, Value::map(), Value::map(), "digest", "the rows of a test", {}};
  content.description.set("data", Value::text("one"));
  int writes = 0;
  content.write = [&](const std::vector<std::filesystem::path>& paths) {
    ++writes;
    for (const auto& path : paths) files::write(path, path.filename().string());
  };
  const auto paths = write_saved_folder("mixture.save", save, content);
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(test::read_file(paths[1]), "train-00001-of-00002.jsonl");
  EXPECT_EQ(to_json(*parse_file(folder / "out/dataset_info.json").find("splits")),
            R"({"train": {"name": "train", "num_examples": 2}})");
  write_saved_folder("mixture.save", save, content);
  EXPECT_EQ(writes, 1);
  content.description.set("data", Value::text("two"));
  EXPECT_NE(test::refusal([&] { write_saved_folder("mixture.save", save, content); }).find("holds other data"),
            std::string::npos);
  save.overwrite = true;
  write_saved_folder("mixture.save", save, content);
  EXPECT_EQ(writes, 2);
}

TEST(SavedFolder, IsNotOverSomebodysFiles) {
  const test::TemporaryFolder folder;
  SaveConfig save = section("format: csv, what: rows");
  save.output_path = folder.path().string();
  EXPECT_EQ(
      test::replaced(test::refusal([&] { check_saved_folder("mixture.save", save); }), folder.path().string(), "DIR"),
      "mixture.save.output_path: 'DIR' already exists\n    set overwrite: true, or name another folder");
  save.overwrite = true;
  check_saved_folder("mixture.save", save);
}

TEST(SaveConfig, RefusesExamplesAsCsv) {
  SaveConfig out;
  EXPECT_EQ(config::read(parse_yaml("{path: out, format: csv}"), out, "run.yaml").text(),
            "run.yaml:1:21: format: csv cannot hold the lists of tokens of an example\n"
            "    choose another format, or what: rows\n1 problem in run.yaml; nothing was run.");
}

}  // namespace
}  // namespace easydel::data
