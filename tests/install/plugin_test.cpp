// A model family and a training method from outside the tree: examples/plugin is built against the installed package
// and loaded by the installed program.
#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel::test {
namespace {

// Installed and built once; each test looks at it in its own way.
class Plugin : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const fs::path build = program().parent_path().parent_path(), prefix = *folder_ / "prefix";
    made_ = must({"cmake", "--install", build.string(), "--prefix", prefix.string()}) &&
            must({"cmake", "-G", "Ninja", "-S", (source_root() / "examples/plugin").string(), "-B",
                  (*folder_ / "out").string(), "-DCMAKE_PREFIX_PATH=" + prefix.string()}) &&
            must({"cmake", "--build", (*folder_ / "out").string()});
    const fs::path model = *folder_ / "model", stories = test_data("models/stories260K-hf");
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      write_file(model / name, read_file(stories / name));
    Value config = parse_file(stories / "config.json");
    config.set("model_type", Value::text("llama_layernorm"));
    config.set("architectures", parse_yaml("[LlamaLayerNormForCausalLM]"));
    config.set("final_logit_softcapping", Value::number(30));
    write_file(model / "config.json", to_json(config));
  }
  static void TearDownTestSuite() { delete folder_; }
  void SetUp() override { ASSERT_TRUE(made_); }

  static bool must(const std::vector<std::string>& command) {
    const Ran ran = run(command);
    if (ran.status != 0) ADD_FAILURE() << command[1] << ": " << ran.out << ran.err;
    return ran.status == 0;
  }
  // The installed program; its words with the folder as FOLDER.
  static Ran easydel(std::vector<std::string> arguments, const RunOptions& options = {}) {
    arguments.insert(arguments.begin(), (*folder_ / "prefix/bin/easydel").string());
    Ran ran = run(arguments, options);
    ran.err = replaced(ran.err, folder_->path().string(), "FOLDER");
    return ran;
  }
  static std::string file(const std::string& name) { return (*folder_ / name).string(); }
  // A library of one source file.
  static std::string library(const std::string& name, const std::string& source) {
    write_file(*folder_ / (name + ".cpp"), source);
    EXPECT_TRUE(must({"c++", "-shared", "-fPIC", "-o", file(name + ".so"), file(name + ".cpp")}));
    return file(name + ".so");
  }

  static TemporaryFolder* folder_;
  static bool made_;
};
TemporaryFolder* Plugin::folder_ = nullptr;
bool Plugin::made_ = false;

TEST_F(Plugin, GivesAFamilyThatComputes) {
  const Ran ran = easydel({"--quiet", "--plugin", file("out/llama_layernorm.so"), "generate", file("model"),
                           "--random-weights", "--prompt", "One day", "-n", "3"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out, "");
  const Ran described = easydel({"describe", "model", file("model")},
                                {.environment = {{"EASYDEL_PLUGINS", file("out/llama_layernorm.so")}}});
  EXPECT_EQ(described.status, 0) << described.err;
  EXPECT_NE(described.out.find("llama_layernorm"), std::string::npos) << described.out;
}

TEST_F(Plugin, TrainsSavesAndLoadsWhatItSaved) {
  write_file(*folder_ / "rows.jsonl", "{\"text\": \"Once upon a time\"}\n{\"text\": \"there was a test\"}\n");
  write_file(
      *folder_ / "run.yaml",
      "model: {name_or_path: model}\nloader: {dtype: fp32, param_dtype: fp32}\nmixture: {informs: [{data_files: "
      "rows.jsonl}]}\n"
      "trainer: {total_batch_size: 2, max_training_steps: 1, max_length: 32, save_directory: runs, model_name: m}\n"
      "actions: [validate, train]\n");
  const std::vector<std::string> plugin{"--quiet", "--plugin", file("out/llama_layernorm.so")};
  std::vector<std::string> train = plugin, again = plugin;
  train.insert(train.end(), {"elarge", "run.yaml"});
  const Ran ran = easydel(train, {.folder = folder_->path()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  again.insert(again.end(), {"generate", file("runs/m/run-1"), "--prompt", "One day", "-n", "1"});
  EXPECT_EQ(easydel(again).status, 0);
}

// A method with its own source of examples, a teacher, a per-token column, and a state.
TEST_F(Plugin, GivesAMethodThatTrainsOnItsOwnCompletions) {
  std::string rows;
  for (const char* text : {"Once upon a time", "One day a girl", "The dog was", "Tim had a red ball"})
    rows += std::string("{\"text\": \"") + text + "\"}\n";
  write_file(*folder_ / "prompts.jsonl", rows);
  const std::string stories = test_data("models/stories260K-hf").string();
  const auto yaml = [&](const std::string& dtype, const std::string& more, int steps) {
    write_file(*folder_ / "method.yaml",
               "model: {name_or_path: " + stories + "}\nloader: {dtype: " + dtype + ", param_dtype: fp32}\n" + more +
                   "mixture: {informs: [{data_files: prompts.jsonl}]}\n"
                   "trainer: {trainer_type: teacher_weighted, max_completion_length: 8, total_batch_size: 2, "
                   "max_training_steps: " +
                   std::to_string(steps) + ", save_directory: method_" + dtype +
                   ", model_name: m, report_steps: 1}\nactions: [train]\n");
    return easydel({"--quiet", "--plugin", file("out/teacher_weighted.so"), "elarge", "method.yaml"},
                   {.folder = folder_->path()});
  };
  const std::string teacher = "teacher_model: {name_or_path: " + stories + "}\n";
  for (const char* dtype : {"fp32", "bf16"}) {
    const fs::path runs = *folder_ / ("method_" + std::string(dtype)) / "m";
    EXPECT_EQ(yaml(dtype, teacher, 2).status, 0);
    EXPECT_EQ(parse_file(runs / "run-2/state.json").find("method")->find("completions")->as_int(), 4);
    const Ran ran = yaml(dtype, teacher, 3);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(parse_file(runs / "run-3/state.json").find("method")->find("completions")->as_int(), 6);
    EXPECT_NE(read_file(runs / "metrics.jsonl").find("teacher_probability"), std::string::npos);
  }
  const Ran refused = yaml("fp32", "", 3);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("teacher_model: is missing: trainer_type teacher_weighted needs it\n"), std::string::npos)
      << refused.err;
}

TEST_F(Plugin, GivesARewardOfSampledCompletions) {
  write_file(*folder_ / "asked.jsonl", "{\"prompt\": \"Once upon a time\"}\n{\"prompt\": \"One day a girl\"}\n");
  write_file(
      *folder_ / "rewarded.yaml",
      "model: {name_or_path: " + test_data("models/stories260K-hf").string() +
          "}\nloader: {dtype: fp32, param_dtype: fp32}\nmixture: {informs: [{data_files: asked.jsonl}]}\n"
          "trainer: {trainer_type: grpo, max_completion_length: 8, total_batch_size: 4, num_return_sequences: 2, "
          "max_training_steps: 1, save_directory: rewarded, model_name: m, rewards: [{type: plugin, function: "
          "ends_as_a_sentence}]}\nactions: [train]\n");
  const Ran ran = easydel({"--quiet", "--plugin", file("out/sentence_reward.so"), "elarge", "rewarded.yaml"},
                          {.folder = folder_->path()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(read_file(*folder_ / "rewarded/m/rollouts.jsonl").find("\"rewards\": {\"plugin\": "), std::string::npos);
}

TEST_F(Plugin, GivesAFunctionOverRows) {
  write_file(*folder_ / "articles.jsonl",
             "{\"title\": \"a dog\", \"body\": \"The dog ran.\"}\n{\"title\": \"a cat\", \"body\": \"\"}\n{\"body\": "
             "\"No title.\"}\n");
  write_file(*folder_ / "articles.yaml",
             "model: {name_or_path: " + test_data("models/stories260K-hf").string() +
                 "}\nmixture: {informs: [{data_files: articles.jsonl, preprocessing_fn: articles_to_questions}]}\n"
                 "trainer: {trainer_type: sft, total_batch_size: 1}\n");
  const std::vector<std::string> show{"--quiet", "data", "show", "articles.yaml", "--count", "1", "--json"};
  std::vector<std::string> with_plugin{"--plugin", file("out/question_rows.so")};
  with_plugin.insert(with_plugin.end(), show.begin(), show.end());
  const Ran ran = easydel(with_plugin, {.folder = folder_->path()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("articles.jsonl:1"), std::string::npos) << ran.out;
  with_plugin[3] = "data", with_plugin[4] = "check", with_plugin[5] = "articles.yaml", with_plugin.resize(6);
  const Ran checked = easydel(with_plugin, {.folder = folder_->path()});
  EXPECT_EQ(checked.status, 1) << checked.err;
  EXPECT_NE(checked.out.find("articles.jsonl:3"), std::string::npos) << checked.out;
  EXPECT_EQ(checked.out.find("articles.jsonl:2"), std::string::npos) << "the function leaves this row out";
  const Ran without = easydel(show, {.folder = folder_->path()});
  EXPECT_EQ(without.status, 2);
  EXPECT_NE(without.err.find("'articles_to_questions' is neither a .jinja file nor a row function of a plug-in"),
            std::string::npos)
      << without.err;
}

TEST_F(Plugin, WithoutItTheFamilyIsUnknown) {
  const Ran ran = easydel({"generate", file("model"), "--random-weights", "--prompt", "One day"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_TRUE(ran.err.starts_with("FOLDER/model/config.json: model_type: 'llama_layernorm' is not built yet\n"))
      << ran.err;
}

TEST_F(Plugin, AnotherFileIsOneClearError) {
  const auto refusal_of = [](const std::string& name) {
    const Ran ran = easydel({"--plugin", name, "generate", file("model"), "--random-weights", "--prompt", "x"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  };
  EXPECT_EQ(refusal_of(file("nothing.so")),
            "FOLDER/nothing.so: there is no such plug-in\n    give a shared library, name.so\n");
  write_file(*folder_ / "text.so", "no library");
  EXPECT_EQ(refusal_of(file("text.so")),
            "FOLDER/text.so: cannot be loaded: file too short\n    rebuild it against this program's package "
            "(docs/adding_a_model.md)\n");
  EXPECT_EQ(refusal_of(library("plain", "int x;")),
            "FOLDER/plain.so: is not a plug-in: it has no easydel_plugin_abi\n    see docs/adding_a_model.md\n");
  const std::string old = refusal_of(library("old",
                                             "extern \"C\" const char* easydel_plugin_abi() { return \"easydel "
                                             "0.0.9\"; }\nextern \"C\" void easydel_plugin(void*) {}\n"));
  EXPECT_TRUE(
      old.starts_with("FOLDER/old.so: is built against 'easydel 0.0.9', and this program is 'easydel 0.1.0, headers "))
      << old;
  EXPECT_TRUE(old.ends_with("'\n    rebuild it against this program's package (docs/adding_a_model.md)\n")) << old;
}

TEST_F(Plugin, CannotReuseAName) {
  const std::string source =
      replaced(read_file(source_root() / "examples/plugin/llama_layernorm.cpp"), "\"llama_layernorm\"", "\"llama\"");
  write_file(*folder_ / "taken/taken.cpp", source);
  write_file(*folder_ / "taken/CMakeLists.txt",
             "cmake_minimum_required(VERSION 3.25)\nproject(taken LANGUAGES CXX)\nfind_package(easydel "
             "REQUIRED)\neasydel_add_plugin(taken taken.cpp)\n");
  ASSERT_TRUE(must(
      {"cmake", "-G", "Ninja", "-S", file("taken"), "-B", file("taken/out"), "-DCMAKE_PREFIX_PATH=" + file("prefix")}));
  ASSERT_TRUE(must({"cmake", "--build", file("taken/out")}));
  EXPECT_EQ(easydel({"--plugin", file("taken/out/taken.so"), "version"}).err,
            "FOLDER/taken/out/taken.so: model_type: 'llama' already exists\n    give the family a name of its own\n");
}

}  // namespace
}  // namespace easydel::test
