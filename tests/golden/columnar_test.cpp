// The same rows train the same bits, whatever files they come in.
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::test {
namespace {

std::string trained_on(const std::string& rows, const std::vector<std::string>& more = {}) {
  TemporaryFolder folder;
  write_file(folder / "run.yaml", "model: {name_or_path: " + test_data("models/stories260K-hf").string() +
                                      ", tokenizer: " + test_data("models/stories260K-chat").string() +
                                      "}\nloader: {dtype: fp32, param_dtype: fp32}\nmixture: {informs: [{data_files: " +
                                      test_data("columnar/" + rows).string() +
                                      "}]}\ntrainer: {total_batch_size: 4, max_training_steps: 3, max_length: 32, "
                                      "save_directory: out}\nactions: [train]\n");
  std::vector<std::string> arguments = {"--quiet", "elarge", "run.yaml"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Ran ran = run_program(arguments, {.folder = folder.path()});
  if (ran.status != 0) return ran.err;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "out"))
    if (entry.path().filename() == "model.safetensors") return read_file(entry.path());
  return "no model was saved";
}

TEST(Columnar, RowsTrainTheBitsOfTheSameRowsInJson) {
  if (!fs::exists(program().parent_path().parent_path() / "lib/libeasydel_arrow.so"))
    GTEST_SKIP() << "built without Arrow";
  const std::string json = trained_on("texts.jsonl");
  ASSERT_GT(json.size(), 1'000'000u) << json;
  EXPECT_EQ(json == trained_on("zstd_2.parquet"), true);
  EXPECT_EQ(json == trained_on("gzip_1.parquet"), true);
  EXPECT_EQ(trained_on("saved") == trained_on("chats.parquet"), true);
}

}  // namespace
}  // namespace easydel::test
