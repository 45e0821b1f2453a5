// Broken model folders and data, as far as only torch can detect them: one clear error, status 2, and nothing
// half-written.
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel {
namespace {

namespace fs = std::filesystem;

class BadModel : public testing::Test {
 protected:
  BadModel() {
    fs::copy(test::test_data("models/stories260K-hf"), folder_ / "model", fs::copy_options::recursive);
    for (const auto& entry : fs::directory_iterator(folder_ / "model"))
      fs::permissions(entry, fs::perms::owner_write, fs::perm_options::add);
    test::write_file(folder_ / "rows.jsonl", "{\"text\": \"Once upon a time\"}\n{\"text\": \"there was a test\"}\n");
  }
  // The run's errors, without its log.
  test::Ran train(std::vector<std::pair<std::string, std::string>> environment = {}) const {
    test::write_file(
        folder_ / "run.yaml",
        "model: {name_or_path: model}\nloader: {dtype: fp32, param_dtype: fp32, verbose: false}\nmixture: "
        "{informs: [{data_files: rows.jsonl}]}\n"
        "trainer: {total_batch_size: 2, max_training_steps: 1, max_length: 32, tensorboard: false, save_directory: "
        "out}\nactions: [train]\n");
    return test::run_program({"--quiet", "elarge", "run.yaml"},
                             {.environment = std::move(environment), .folder = folder_.path()});
  }
  void expect_refusal(const std::string& text) const {
    const auto ran = train();
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err, text);
    EXPECT_FALSE(fs::exists(folder_ / "out"));
  }
  void expect_problem(const std::string& problem) const;
  void change_config(std::string_view from, std::string_view to) const {
    test::write_file(folder_ / "model/config.json",
                     test::replaced(test::read_file(folder_ / "model/config.json"), from, to));
  }
  test::TemporaryFolder folder_;
};

// Training and validation both find the problem of the folder before anything runs.
void BadModel::expect_problem(const std::string& problem) const {
  const std::string text =
      "run.yaml:1:23: model.name_or_path: " + problem + "\n1 problem in run.yaml; nothing was run.\n";
  expect_refusal(text);
  const auto ran = test::run_program({"validate", "run.yaml"}, {.folder = folder_.path()});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err, text);
}

TEST_F(BadModel, WeightsThatAreCutShort) {
  test::write_file(folder_ / "model/model.safetensors",
                   test::read_file(folder_ / "model/model.safetensors").substr(0, 100000));
  expect_problem(
      "model/model.safetensors: tensor 'model.embed_tokens.weight' ends at byte 131072 of the data, but there are only "
      "95136\n    the file is truncated; fetch or save it again");
}

TEST_F(BadModel, WeightsThatAreGarbage) {
  test::write_file(folder_ / "model/model.safetensors", "garbage garbage garbage garbage");
  expect_problem(
      "model/model.safetensors: says that its header has 2334385649822622055 bytes; at most 100000000 are allowed\n"
      "    the file is damaged or was not written as safetensors; fetch or save it again");
}

TEST_F(BadModel, WeightsInAFormatThatIsNotRead) {
  fs::rename(folder_ / "model/model.safetensors", folder_ / "model/tf_model.h5");
  expect_problem("model: has only weights that are not read (tf_model.h5)\n    convert them to safetensors");
}

TEST_F(BadModel, WeightsOfAnotherShapeThanTheConfigSays) {
  change_config("\"vocab_size\": 512", "\"vocab_size\": 500");
  const std::string text =
      "model: the weights do not fit config.json\n    wrong shape (1):\n      model.embed_tokens.weight: the file has "
      "[512, 64], config.json requires [500, 64] by vocab_size\n";
  expect_refusal(text);
  const auto ran = test::run_program({"validate", "run.yaml"}, {.folder = folder_.path()});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err, text);
  // The launcher says it once, before there are ranks.
  const auto two = test::run_program({"--nproc", "2", "elarge", "run.yaml"}, {.folder = folder_.path()});
  EXPECT_EQ(two.status, 2);
  EXPECT_EQ(two.err, text);
}

TEST_F(BadModel, AConfigThatNoModelCanBeBuiltFrom) {
  change_config("\"num_key_value_heads\": 4", "\"num_key_value_heads\": 3");
  expect_refusal("model/config.json: num_key_value_heads: 3 does not divide num_attention_heads, 8\n");
}

TEST_F(BadModel, AnUnknownModelType) {
  change_config("\"llama\"", "\"lama\"");
  expect_problem("model/config.json: model_type: 'lama' is not built yet\n    did you mean 'llama'?");
}

TEST_F(BadModel, AnArchitectureThatIsNotBuilt) {
  change_config("LlamaForCausalLM", "LlamaForMultipleChoice");
  expect_problem(
      "model/config.json: architectures: 'LlamaForMultipleChoice' is not built yet\n    built for 'llama': "
      "LlamaForCausalLM, "
      "LlamaModel, LlamaForSequenceClassification, LlamaForTokenClassification, LlamaForQuestionAnswering");
}

TEST_F(BadModel, AConfigThatIsNotJson) {
  test::write_file(folder_ / "model/config.json", "{\"a\": ");
  expect_problem("model/config.json:1:7: is not JSON: a value is missing\n    is the file complete?");
}

TEST_F(BadModel, NoTokenizer) {
  for (const auto& entry : fs::directory_iterator(folder_ / "model"))
    if (entry.path().filename().string().starts_with("tokenizer")) fs::remove(entry);
  expect_problem(
      "model: has no tokenizer (tokenizer.json)\n    give the folder of a tokenizer, or a tokenizer.json, "
      "tokenizer.model, *.tiktoken, tekken.json, vocab.txt or *.gguf");
}

TEST_F(BadModel, SeveralThingsAtOnce) {
  change_config("\"llama\"", "\"lama\"");
  test::write_file(folder_ / "model/model.safetensors", "garbage garbage garbage garbage");
  test::write_file(folder_ / "model/tokenizer.json", "{}");
  fs::remove(folder_ / "rows.jsonl");
  const auto ran = train();
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(
      test::replaced(ran.err, folder_.path().string(), "FOLDER"),
      "run.yaml:1:23: model.name_or_path: model/config.json: model_type: 'lama' is not built yet\n    did you mean "
      "'llama'?\n"
      "run.yaml:1:23: model.name_or_path: model/model.safetensors: says that its header has 2334385649822622055 bytes; "
      "at most "
      "100000000 are allowed\n    the file is damaged or was not written as safetensors; fetch or save it again\n"
      "run.yaml:1:23: model.name_or_path: model/tokenizer.json: has no 'model'\n    is it the file of a tokenizer?\n"
      "run.yaml:3:34: mixture.informs[0].data_files: no file matches 'rows.jsonl'\n"
      "    looked from FOLDER; give a path or a pattern such as data/*.jsonl\n"
      "4 problems in run.yaml; nothing was run.\n");
}

TEST_F(BadModel, ADeviceThatDoesNotExist) {
  train();  // for its run.yaml
  const auto ran = test::run_program({"validate", "run.yaml", "--set", "loader.device=gpu"},
                                     {.environment = {{"CUDA_VISIBLE_DEVICES", ""}}, .folder = folder_.path()});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err, "loader.device: 'gpu' was requested, but torch finds no GPU\n    use cpu or auto\n");
  const auto golden = test::test_data("hf_goldens/llama");
  const auto probe =
      test::run_program({"probe", "logits", golden.string(), "--inputs", (golden / "expected.safetensors").string(),
                         "--output", "out.safetensors", "--device", "gpu"},
                        {.environment = {{"CUDA_VISIBLE_DEVICES", ""}}, .folder = folder_.path()});
  EXPECT_EQ(probe.status, 2);
  EXPECT_EQ(probe.err, "--device: 'gpu' was requested, but torch finds no GPU\n    use cpu or auto\n");
  EXPECT_FALSE(fs::exists(folder_ / "out.safetensors"));
}

TEST_F(BadModel, ARowWithoutItsField) {
  test::write_file(folder_ / "rows.jsonl", "{\"text\": \"a\"}\n{\"tex\": \"b\"}\n");
  expect_refusal(
      "rows.jsonl:2: the row has no field 'text'; it has: tex\n    name the field with the text by "
      "mixture.informs[0].content_field; or give messages, prompt + completion, instruction + output, or prompt + "
      "chosen + rejected\n");
}

TEST_F(BadModel, DataWithoutRows) {
  test::write_file(folder_ / "rows.jsonl", "");
  expect_refusal(
      "mixture.informs: there is nothing to train on in 0 rows\n    give at least one row with a text, a conversation "
      "or an answer\n");
}

TEST_F(BadModel, ADiskThatFillsUpWhileItIsSaved) {
  const auto ran = train({{"EASYDEL_FAULT", "write:5:ENOSPC"}});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(
      ran.err.find("cannot write: No space left on device\n    free some space, or choose a folder on another disk\n"),
      std::string::npos)
      << ran.err;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "out"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("run-")) << entry.path() << " was saved by half";
  const auto again = train();
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_TRUE(fs::exists(folder_ / "out/model/run-1/manifest.json"));
}

}  // namespace
}  // namespace easydel
