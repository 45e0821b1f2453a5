// Broken model folders and data through the program, as far as torch must see them: one clear error, status 2, and
// nothing half-written.
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel {
namespace {

namespace fs = std::filesystem;

class BadModel : public testing::Test {
 protected:
  BadModel() {
    fs::copy(test::test_data("models/stories260K-hf"), folder_ / "model", fs::copy_options::recursive);
    for (const auto& entry : fs::directory_iterator(folder_ / "model")) fs::permissions(entry, fs::perms::owner_write, fs::perm_options::add);
    test::write_file(folder_ / "rows.jsonl", "{\"text\": \"Once upon a time\"}\n{\"text\": \"there was a test\"}\n");
  }
  // The run's errors, without what it logged on the way.
  test::Ran train(std::vector<std::pair<std::string, std::string>> environment = {}) const {
    test::write_file(folder_ / "run.yaml",
                     "model: {name_or_path: model}\nloader: {dtype: fp32, param_dtype: fp32, verbose: false}\nmixture: {informs: [{data_files: rows.jsonl}]}\n"
                     "trainer: {total_batch_size: 2, max_training_steps: 1, max_length: 32, save_directory: out}\nactions: [train]\n");
    return test::run_program({"--quiet", "elarge", "run.yaml"}, {.environment = std::move(environment), .folder = folder_.path()});
  }
  void expect_refusal(const std::string& text) const {
    const auto ran = train();
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err, text);
    EXPECT_FALSE(fs::exists(folder_ / "out"));
  }
  void change_config(std::string_view from, std::string_view to) const {
    test::write_file(folder_ / "model/config.json", test::replaced(test::read_file(folder_ / "model/config.json"), from, to));
  }
  test::TemporaryFolder folder_;
};

TEST_F(BadModel, WeightsThatAreCutShort) {
  test::write_file(folder_ / "model/model.safetensors", test::read_file(folder_ / "model/model.safetensors").substr(0, 100000));
  const auto ran = train();
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err.substr(0, 71), "model/model.safetensors: tensor 'model.embed_tokens.weight' ends at byt");
  EXPECT_NE(ran.err.find("\n    the file is cut short; fetch or save it again\n"), std::string::npos) << ran.err;
}

TEST_F(BadModel, WeightsThatAreGarbage) {
  test::write_file(folder_ / "model/model.safetensors", "garbage garbage garbage garbage");
  expect_refusal(
      "model/model.safetensors: says that its header has 2334385649822622055 bytes; at most 100000000 are allowed\n"
      "    the file is damaged or was not written as safetensors; fetch or save it again\n");
}

TEST_F(BadModel, WeightsOfAnotherShapeThanTheConfigSays) {
  change_config("\"vocab_size\": 512", "\"vocab_size\": 500");
  expect_refusal(
      "model: the weights do not fit config.json\n    wrong shape (1):\n"
      "      model.embed_tokens.weight: the file has [512, 64], config.json asks for [500, 64]\n");
}

TEST_F(BadModel, AnUnknownModelType) {
  change_config("\"llama\"", "\"lama\"");
  expect_refusal("model/config.json: model_type: 'lama' is not built yet\n    did you mean 'llama'?\n");
}

TEST_F(BadModel, AConfigThatIsNotJson) {
  test::write_file(folder_ / "model/config.json", "{\"a\": ");
  expect_refusal(
      "run.yaml:1:23: model.name_or_path: model/config.json:1:7: is not JSON: a value is missing\n    the text ends in the middle?\n"
      "1 problem in run.yaml; nothing was run.\n");
}

TEST_F(BadModel, ARowWithoutItsField) {
  test::write_file(folder_ / "rows.jsonl", "{\"text\": \"a\"}\n{\"tex\": \"b\"}\n");
  expect_refusal(
      "rows.jsonl:2: the row has no field 'text'; it has: tex\n    name the field that holds the text with "
      "mixture.informs[0].content_field; or give messages, prompt + completion, or prompt + chosen + rejected\n");
}

TEST_F(BadModel, DataWithoutRows) {
  test::write_file(folder_ / "rows.jsonl", "");
  expect_refusal("mixture.informs: there is nothing to learn in 0 rows\n    give at least one row with a text, a conversation or an answer\n");
}

TEST_F(BadModel, ADiskThatFillsUpWhileItIsSaved) {
  const auto ran = train({{"EASYDEL_FAULT", "write:3:ENOSPC"}});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("cannot write: No space left on device\n    free some space, or choose a folder on another disk\n"), std::string::npos)
      << ran.err;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "out"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("run-")) << entry.path() << " was saved by half";
  const auto again = train();
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_TRUE(fs::exists(folder_ / "out/model/run-1/manifest.json"));
}

}  // namespace
}  // namespace easydel
