// `easydel generate`: where prompts come from, how results are printed, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

namespace fs = std::filesystem;
using test::run_program;

const std::string& story() {
  static const std::string folder = test::test_data("models/stories260K-hf").string();
  return folder;
}

std::vector<Value> lines_of(const std::string& text) {
  std::vector<Value> out;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    out.push_back(parse_json(text.substr(begin, end - begin)));
  return out;
}

// The prompt and the continuation are what the whole text is: "Once upon" and " a time", not "a time".
TEST(Generate, KeepsTheSpaceBetweenThePromptAndItsContinuation) {
  for (const char* beams : {"1", "2"}) {
    const auto ran =
        run_program({"generate", story(), "-p", "One day, Max", "-n", "5", "--num-beams", beams, "--jsonl"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    const std::string text = lines_of(ran.out).at(0).find("text")->scalar;
    EXPECT_TRUE(text.starts_with(" ")) << text;
    const auto shown = run_program({"generate", story(), "-p", "One day, Max", "-n", "5", "--num-beams", beams});
    EXPECT_EQ(shown.out, "One day, Max" + text + "\n");
  }
}

TEST(Generate, TakesAFileOfPrompts) {
  const test::TemporaryFolder folder;
  const auto texts = [&](const std::string& name, const std::string& content) {
    test::write_file(folder / name, content);
    const auto ran =
        run_program({"generate", story(), "--prompts-file", name, "-n", "4", "--jsonl"}, {.folder = folder.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::vector<std::string> out;
    for (const Value& line : lines_of(ran.out)) {
      EXPECT_EQ(line.find("index")->as_int(), static_cast<int64_t>(out.size()));
      out.push_back(line.find("prompt")->scalar + "|" + line.find("text")->scalar);
    }
    return out;
  };
  const auto plain = texts("a.txt", "Once upon a time\n\nThe dog\r\n");
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_TRUE(plain[1].starts_with("The dog|")) << plain[1];
  EXPECT_EQ(texts("a.jsonl", "\"Once upon a time\"\n{\"prompt\": \"The dog\"}\n"), plain);
  test::write_file(folder / "bad.jsonl", "\"a\"\n{\"text\": \"b\"}\n");
  const auto bad = run_program({"generate", story(), "--prompts-file", "bad.jsonl"}, {.folder = folder.path()});
  EXPECT_EQ(bad.status, 2);
  EXPECT_EQ(bad.err,
            "bad.jsonl:2: is not a prompt\n    write a JSON text, {\"prompt\": \"...\"} or {\"messages\": [{\"role\": "
            "\"user\", \"content\": \"...\"}]}\n");
  test::write_file(folder / "empty.txt", "\n");
  EXPECT_EQ(run_program({"generate", story(), "--prompts-file", "empty.txt"}, {.folder = folder.path()}).err,
            "empty.txt: has no prompts\n    write one on each line\n");
}

TEST(Generate, AnswersTheConversationsOfAFile) {
  const test::TemporaryFolder folder;
  const std::string chat = test::test_data("models/stories260K-chat").string();
  test::write_file(folder / "a.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}\n\"Once\"\n");
  const std::vector<std::string> usual = {"generate", story(), "--tokenizer", chat, "-n", "4", "--prompts-file"};
  std::vector<std::string> jsonl = usual;
  jsonl.insert(jsonl.end(), {"a.jsonl", "--jsonl"});
  auto lines = lines_of(run_program(jsonl, {.folder = folder.path()}).out);
  ASSERT_EQ(lines.size(), 2u);
  if (lines[0].find("index")->as_int() == 1) std::swap(lines[0], lines[1]);
  EXPECT_EQ(lines[0].find("messages")->items[0].find("content")->scalar, "Hello");
  EXPECT_EQ(lines[1].find("prompt")->scalar, "Once");
  const auto alone = run_program({"generate", story(), "--tokenizer", chat, "-n", "4", "--chat", "-p", "Hello"});
  EXPECT_EQ(alone.out, "> Hello\n" + lines[0].find("text")->scalar + "\n");
}

// A result is printed when it is complete, while others go on: with one at a time, the first comes before the second.
// Ctrl-C after the first line: there would be none yet if lines were held back until the last result.
TEST(Generate, PrintsEachResultWhenItIsComplete) {
  const test::TemporaryFolder folder;
  std::string prompts = "One\n";
  for (int i = 0; i < 400; ++i) prompts += "Two\n";  // far longer than the first line takes to be read
  test::write_file(folder / "prompts.txt", prompts);
  const std::string script =
      "mkfifo lines; $0 -q generate $1 -n 300 --batch 1 --jsonl --prompts-file prompts.txt > lines & "
      "{ head -n 1 > first; kill -INT $!; cat > rest; } < lines; wait $!; exit $?";
  const auto ran = test::run({"sh", "-c", script, test::program().string(), story()}, {.folder = folder.path()});
  EXPECT_EQ(ran.status, 128 + SIGINT) << ran.err;
  EXPECT_EQ(lines_of(test::read_file(folder / "first")).at(0).find("prompt")->scalar, "One");
  // The others had not been generated.
  EXPECT_NE(test::read_file(folder / "rest").find("\"finish_reason\": \"cancelled\""), std::string::npos);
}

TEST(Generate, EchoesThePromptUnlessToldNotTo) {
  const std::vector<std::string> usual = {"generate", story(), "-n", "4", "-p", "Once upon", "-p", "The dog"};
  const auto echoed = run_program(usual);
  auto quiet = usual;
  quiet.emplace_back("--no-echo");
  const auto alone = run_program(quiet);
  EXPECT_EQ(test::replaced(test::replaced(echoed.out, "Once upon", ""), "The dog", ""), alone.out);
  EXPECT_NE(echoed.out, alone.out);
}

// By the plain loop and the engine: the constraint is not there before the marker, and neither after what followed it.
TEST(Generate, ConstrainsWhatFollowsAMarker) {
  for (const char* engine : {"generator", "esurge"}) {
    const auto text = [&](const std::vector<std::string>& more) {
      std::vector<std::string> words = {"generate", story(),    "-p",   "Once upon a time", "-n", "40", "--temperature",
                                        "0",        "--engine", engine, "--jsonl"};
      words.insert(words.end(), more.begin(), more.end());
      const auto ran = run_program(words);
      EXPECT_EQ(ran.status, 0) << ran.err;
      return ran.status == 0 ? lines_of(ran.out).at(0).find("text")->scalar : "";
    };
    const std::string free = text({}), begin = ", there was", dog = " a blue dog.";
    ASSERT_TRUE(free.starts_with(begin)) << free;
    ASSERT_FALSE(free.starts_with(begin + dog));
    const std::string goes_on = text({"--after", "there was", "--choice", dog});
    EXPECT_TRUE(goes_on.starts_with(begin + dog)) << goes_on;
    EXPECT_GT(goes_on.size(), (begin + dog).size() + 10);
    EXPECT_EQ(text({"--after", "there was", "--after-ends", "--choice", dog}), begin + dog);
    EXPECT_EQ(text({"--choice", dog}), dog) << "everywhere";
  }
}

TEST(Generate, DrawsAtRandomWithoutASeedAndSaysWhichItWas) {
  const std::vector<std::string> usual = {"generate", story(), "-n", "30", "-t", "2", "-p", "Once upon"};
  const auto drawn = run_program(usual), again = run_program(usual);
  ASSERT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_NE(drawn.out, again.out);
  const size_t at = drawn.err.find("seed ");
  ASSERT_NE(at, std::string::npos) << drawn.err;
  std::vector<std::string> same = usual;
  same.insert(same.end(), {"--seed", drawn.err.substr(at + 5, drawn.err.find('\n', at) - at - 5)});
  const auto repeated = run_program(same);
  EXPECT_EQ(repeated.out, drawn.out);
  EXPECT_EQ(repeated.err.find("seed "), std::string::npos);
  EXPECT_EQ(run_program({"generate", story(), "-n", "3", "-t", "0", "-p", "x"}).err.find("seed "), std::string::npos);
}

TEST(Generate, SaysTokensPerSecondWhereAsked) {
  const std::vector<std::string> usual = {"generate", story(), "-n", "4", "--stats", "-p", "Once upon"};
  const std::string one = run_program(usual).err;
  EXPECT_NE(one.find("prompt: 3 tokens, "), std::string::npos) << one;
  EXPECT_NE(one.find("; continuation: 4 tokens, "), std::string::npos) << one;
  std::vector<std::string> two = usual;
  two.insert(two.end(), {"-p", "The dog"});
  const std::string several = run_program(two).err;
  EXPECT_NE(several.find("2 results: "), std::string::npos) << several;
  EXPECT_NE(several.find(" new tokens/s\n"), std::string::npos) << several;
}

class FolderOfAModel : public testing::Test {
 protected:
  FolderOfAModel() {
    for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"})
      test::write_file(folder_ / name, test::read_file(fs::path(story()) / name));
  }
  std::string refused(const std::string& command = "generate") const {
    const auto ran = run_program({"-q", command, ".", "-n", "2"}, {.input = "Once\n", .folder = folder_.path()});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  }
  test::TemporaryFolder folder_;
};

TEST_F(FolderOfAModel, WithoutWeightsIsRefusedUnlessTheyMayBeRandom) {
  for (const char* command : {"generate", "chat"})
    EXPECT_EQ(refused(command),
              ".: has no weights (model.safetensors)\n    give the folder of a trained model; --random-weights "
              "generates with random values\n");
  const auto ran =
      run_program({"-q", "generate", ".", "-n", "2", "-p", "Once", "--random-weights"}, {.folder = folder_.path()});
  EXPECT_EQ(ran.status, 0) << ran.err;
}

TEST_F(FolderOfAModel, WithoutWeightsIsRefusedByTheActionUnlessTheyMayBeRandomOrAreTrained) {
  const auto run = [&](const std::string& actions) {
    test::write_file(folder_ / "lines.txt", "Once upon a time\n");
    test::write_file(folder_ / "run.yaml",
                     "model: {name_or_path: .}\nmixture: {informs: [{data_files: lines.txt}]}\ntrainer: "
                     "{max_training_steps: 1, max_length: 16, total_batch_size: 1, save_directory: out, model_name: "
                     "small}\nactions: [" +
                         actions + "]\n");
    return run_program({"-q", "run", "run.yaml"}, {.folder = folder_.path()});
  };
  const auto refused = run("{generate: {prompts: [Once], max_new_tokens: 2}}");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(
      refused.err,
      "run.yaml:4:22: actions[0].generate: '.' has no weights (model.safetensors)\n    give the folder of a trained "
      "model, or train before; random_weights: true generates with random values\n"
      "1 problem in run.yaml; nothing was run.\n");
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(run("{generate: {prompts: [Once], max_new_tokens: 2, random_weights: true}}").status, 0);
  const auto trained = run("train, {generate: {prompts: [Once], max_new_tokens: 2}}");
  EXPECT_EQ(trained.status, 0) << trained.err;
}

TEST_F(FolderOfAModel, WithNaNInAWeightNamesIt) {
  std::string bytes = test::read_file(fs::path(story()) / "model.safetensors");
  bytes.replace(bytes.size() - 4, 4, "\xff\xff\xff\x7f");
  test::write_file(folder_ / "model.safetensors", bytes);
  EXPECT_EQ(refused(),
            "model.norm.weight: holds values that are not finite (NaN or infinity), so the model's scores are NaN\n    "
            "fetch the weights again, or go back to a checkpoint from before the training diverged\n");
}

TEST_F(FolderOfAModel, ThatHoldsAGitLfsPointerSaysSo) {
  test::write_file(folder_ / "model.safetensors",
                   "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1048576\n");
  EXPECT_EQ(refused(),
            "./model.safetensors: is a Git LFS pointer, not the file itself\n    run 'git lfs pull' in its folder, or "
            "fetch the file again\n");
}

TEST_F(FolderOfAModel, ThatHoldsAWebPageSaysSo) {
  const std::string page = "\n<!DOCTYPE html>\n<html><body>401 Unauthorized</body></html>\n";
  const std::string told =
      " is a web page that was saved under this name, probably an error page\n    fetch the file again; the server may "
      "ask for a login (HF_TOKEN)\n";
  for (const char* name : {"model.safetensors", "tokenizer.json", "config.json"}) {
    test::write_file(folder_ / "model.safetensors", test::read_file(fs::path(story()) / "model.safetensors"));
    test::write_file(folder_ / name, page);
    EXPECT_EQ(refused(), str("./", name, ":", told));
  }
}

TEST_F(FolderOfAModel, ThatHoldsAnAdapterSaysOfWhichModel) {
  test::write_file(folder_ / "adapter_model.safetensors", test::read_file(fs::path(story()) / "model.safetensors"));
  test::write_file(folder_ / "adapter_config.json",
                   R"({"peft_type": "LORA", "base_model_name_or_path": "org/base", "r": 8})");
  const std::string told =
      ".: is an adapter (LORA) of 'org/base', not a model\n    give 'org/base', and this folder with --adapter\n";
  EXPECT_EQ(refused(), told);
  // Without a config.json the folder is the adapter alone, and its model is looked for.
  fs::remove(folder_ / "config.json");
  EXPECT_EQ(refused(), "./adapter_config.json: has no target_modules\n    save the adapter again\n");
  test::write_file(folder_ / "adapter_config.json",
                   R"({"peft_type": "LORA", "base_model_name_or_path": "/no/base", "r": 8,
                                                        "target_modules": ["q_proj"]})");
  EXPECT_EQ(refused(),
            "model.name_or_path: '.' is an adapter of '/no/base', which is not there\n    name the model "
            "itself, and the adapter with --adapter\n");
}

}  // namespace
}  // namespace easydel
