// The commands of the README and of docs/generation.md run, in their order, as a reader would paste them in the
// repository's root.
#include "docs/page.h"

namespace easydel {
namespace {

// A folder with the repository's examples and test data, and an easydel.sh that only runs the built program.
class Pasted : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"examples", "tests"})
      test::fs::create_directory_symlink(test::source_root() / name, folder_ / name);
    test::write_file(folder_ / "easydel.sh", "#!/bin/sh\nexec '" + test::program().string() + "' \"$@\"\n");
    test::fs::permissions(folder_ / "easydel.sh", test::fs::perms::owner_all);
  }
  test::Ran paste(const std::string& commands) {
    return test::run({"bash", "-euc", commands}, {.input = "How did Max feel?\n", .folder = folder_.path()});
  }
  static std::string page(const char* name) { return test::read_file(test::source_root() / name); }

  test::TemporaryFolder folder_;
};

// All but the first two blocks: they install, build, run the quickstart (golden/examples_test.cpp) and the tests.
TEST_F(Pasted, TheReadmesCommandsRun) {
  const std::string readme = page("README.md");
  const auto yaml = code_blocks(readme, "yaml"), commands = code_blocks(readme, "bash");
  ASSERT_EQ(yaml.size(), 1u);
  ASSERT_GE(commands.size(), 5u);
  test::write_file(folder_ / "chat.yaml", yaml[0]);
  for (size_t i = 2; i < commands.size(); ++i) {
    const test::Ran ran = paste(commands[i]);
    EXPECT_EQ(ran.status, 0) << commands[i] << ran.out << ran.err;
  }
  const auto model = folder_ / "runs/chat/stories260K-hf";
  for (const char* file : {"metrics.jsonl", "run-20/config.json", "run-20/model.safetensors", "run-20/tokenizer.json"})
    EXPECT_TRUE(test::fs::exists(model / file)) << file;
}

TEST_F(Pasted, TheCommandsOfGenerationRun) {
  const std::string text = page("docs/generation.md");
  for (const std::string& commands : code_blocks(text, "bash")) {
    const test::Ran ran = paste(commands);
    EXPECT_EQ(ran.status, 0) << commands << ran.out << ran.err;
  }
  const auto yaml = code_blocks(text, "yaml");
  ASSERT_EQ(yaml.size(), 1u);
  test::write_file(folder_ / "run.yaml", "model: {name_or_path: tests/data/models/stories260K-hf}\n" + yaml[0]);
  const test::Ran ran = paste("./easydel.sh elarge run.yaml");
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
}

TEST_F(Pasted, TheCommandsOfDataRun) {
  const std::string text = page("docs/data.md");
  test::fs::copy(test::test_data("text/rows_with_mistakes.jsonl"), folder_ / "rows.jsonl");
  test::write_file(folder_ / "run.yaml", code_blocks(text, "yaml").at(0));
  for (const std::string& commands : code_blocks(text, "bash")) {
    const test::Ran ran = paste(commands);
    EXPECT_EQ(ran.status, 0) << commands << ran.out << ran.err;
  }
  EXPECT_TRUE(test::fs::exists(folder_ / "bad.jsonl") && test::fs::exists(folder_ / "lengths.svg"));
}

}  // namespace
}  // namespace easydel
