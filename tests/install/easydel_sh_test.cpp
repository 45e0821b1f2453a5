// easydel.sh, the test runner and the README, as far as they can be tested without installing anything.
#include <gtest/gtest.h>

#include <regex>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel::test {
namespace {

fs::path build_folder() { return program().parent_path().parent_path(); }

Ran easydel_sh(std::vector<std::string> arguments, RunOptions options = {}) {
  arguments.insert(arguments.begin(), {"bash", (source_root() / "easydel.sh").string()});
  options.environment.emplace_back("EASYDEL_BUILD", build_folder().string());
  return run(arguments, options);
}

TEST(EasydelSh, RunsWhatIsBuiltWhereNothingIsToBeBuilt) {
  const Ran ran = easydel_sh({"version"}, {.environment = {{"EASYDEL_NO_BUILD", "1"}}});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, run_program({"version"}).out);
  EXPECT_EQ(ran.err, "");
}

TEST(EasydelSh, HandsArgumentsAndStatusThrough) {
  const Ran ran = easydel_sh({"elarge", "no such file.yaml"}, {.environment = {{"EASYDEL_NO_BUILD", "1"}}});
  const Ran own = run_program({"elarge", "no such file.yaml"});
  EXPECT_EQ(ran.status, own.status);
  EXPECT_NE(own.status, 0);
  EXPECT_EQ(ran.err, own.err);
}

TEST(EasydelSh, RefusesAFolderThatHoldsNoTorch) {
  TemporaryFolder folder;
  const Ran ran = easydel_sh({"build"}, {.environment = {{"EASYDEL_TORCH", folder.path().string()}}});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(replaced(ran.err, folder.path().string(), "FOLDER"),
            "easydel.sh: EASYDEL_TORCH=FOLDER: no include/ATen in it\n"
            "    give the folder site-packages/torch of an installed torch\n");
}

TEST(EasydelSh, RefusesAFolderThatHoldsNoArrow) {
  TemporaryFolder folder, torch;
  fs::create_directories(torch / "include/ATen");
  const Ran ran = easydel_sh({"build"}, {.environment = {{"EASYDEL_TORCH", torch.path().string()},
                                                         {"EASYDEL_ARROW", folder.path().string()}}});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(replaced(ran.err, folder.path().string(), "FOLDER"),
            "easydel.sh: EASYDEL_ARROW=FOLDER: no include/arrow in it\n"
            "    give the folder site-packages/pyarrow of an installed pyarrow\n");
}

struct FakeBuild {
  TemporaryFolder folder;
  void add(const std::string& name, const std::string& script) {
    const fs::path path = folder / ("bin/" + name);
    write_file(path,
               "#!/bin/sh\nfor a in \"$@\"; do case $a in --gtest_output=json:*) out=${a#--gtest_output=json:};; esac; "
               "done\n" +
                   script);
    fs::permissions(path, fs::perms::owner_all);
  }
  Ran test() {
    return run(
        {"python3", (source_root() / "scripts/run_tests.py").string(), "--build", folder.path().string(), "fake"});
  }
};

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

const std::string one_of_each = R"(echo '{"testsuites": [{"name": "S", "testsuite": [
  {"name": "a", "status": "RUN", "result": "COMPLETED"}, {"name": "b", "status": "RUN", "result": "SKIPPED"}]}]}' > $out
)";

TEST(TestRunner, CountsWhatPassedAndWhatWasSkipped) {
  FakeBuild build;
  build.add("test_fake_a", one_of_each);
  build.add("test_fake_b", one_of_each);
  const Ran ran = build.test();
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_EQ(last_line(ran.out), "2 passed, 0 failed, 2 skipped");
}

TEST(TestRunner, CountsACrashAsAFailure) {
  FakeBuild build;
  build.add("test_fake_a", one_of_each);
  build.add("test_fake_b", "kill -SEGV $$\n");
  const Ran ran = build.test();
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(last_line(ran.out), "1 passed, 1 failed, 1 skipped");
}

TEST(TestRunner, DoesNotBelieveABinaryThatReportsSuccessAndFails) {
  FakeBuild build;
  build.add("test_fake_a", one_of_each + "exit 3\n");
  const Ran ran = build.test();
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(last_line(ran.out), "1 passed, 1 failed, 1 skipped");
}

TEST(TestRunner, FailsWhereNothingRan) {
  FakeBuild build;
  build.add("test_fake_a", "echo '{\"testsuites\": []}' > $out\n");
  const Ran ran = build.test();
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(last_line(ran.out), "0 passed, 0 failed, 0 skipped");
}

TEST(FuzzCheck, IsSkippedWhereThereIsNoClang) {
  const std::string script = (source_root() / "tests/fuzz/fuzz_check.py").string();
  const std::string program =
      "import os, runpy, sys; os.environ['PATH'] = '/nowhere'; "
      "sys.argv = ['fuzz_check.py', '--only', 'document']; runpy.run_path('" +
      script + "', run_name='__main__')";
  const Ran ran = run({"python3", "-c", program});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "fuzz_document: skipped: no clang++ with libFuzzer\n0 passed, 0 failed, 1 skipped\n");
}

// A fresh machine needs these two and nothing else.
TEST(Readme, BeginsWithTheTwoCommandsThatDoEverything) {
  const std::string readme = read_file(source_root() / "README.md");
  const std::regex fence("```bash\n([^`]*)```");
  std::vector<std::string> blocks;
  for (std::sregex_iterator block(readme.begin(), readme.end(), fence), end; block != end; ++block)
    blocks.push_back((*block)[1]);
  ASSERT_GE(blocks.size(), 2u);
  blocks.resize(2);
  EXPECT_EQ(blocks,
            (std::vector<std::string>{"./easydel.sh elarge examples/01_quickstart.yaml\n", "./easydel.sh test\n"}));
}

TEST(Readme, LinksToEveryPage) {
  const std::string readme = read_file(source_root() / "README.md");
  for (const auto& entry : fs::directory_iterator(source_root() / "docs")) {
    const std::string page = "docs/" + entry.path().filename().string();
    EXPECT_NE(readme.find("](" + page + ")"), std::string::npos) << page;
  }
}

TEST(Readme, LinksOnlyToWhatIsThere) {
  const std::regex link(R"(\]\(([^)#\s]+)\))");
  for (const auto& entry : fs::recursive_directory_iterator(source_root() / "docs")) {
    if (entry.path().extension() != ".md") continue;
    const std::string text = read_file(entry.path());
    for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match) {
      const std::string target = (*match)[1];
      if (target.starts_with("http")) continue;
      EXPECT_TRUE(fs::exists(entry.path().parent_path() / target)) << entry.path() << " links to " << target;
    }
  }
  const std::string readme = read_file(source_root() / "README.md");
  for (std::sregex_iterator match(readme.begin(), readme.end(), link), end; match != end; ++match)
    EXPECT_TRUE(fs::exists(source_root() / (*match)[1].str())) << "README.md links to " << (*match)[1];
}

TEST(Presets, CanBeRead) {
  const Value presets = parse_file(source_root() / "CMakePresets.json");
  std::vector<std::string> names;
  for (const Value& preset : presets.find("configurePresets")->items) names.push_back(preset.find("name")->scalar);
  EXPECT_EQ(names, (std::vector<std::string>{"base", "release", "dev", "asan", "files", "fuzz"}));
}

}  // namespace
}  // namespace easydel::test
