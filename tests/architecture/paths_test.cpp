// Paths that pages, scripts and CMake files name exist.
#include <gtest/gtest.h>

#include <set>

#include "architecture/source.h"

namespace easydel::test {
namespace {

std::vector<SourceFile> pages() {
  std::vector<SourceFile> all = source_files("docs", {".md"});
  for (const char* folder : {"scripts", "bench", "cmake", "examples", "src"})
    for (SourceFile& file : source_files(folder, {".py", ".sh", ".md", ".cmake", ".txt"}))
      all.push_back(std::move(file));
  for (const char* name : {"README.md", "easydel.sh", ".ci/run"})
    all.push_back({name, read_file(source_root() / name)});
  return all;
}

// Old names on the left of a table that says what replaced them.
bool tells_of_old_names(const SourceFile& page) { return page.path == "docs/design/005-names.md"; }

bool exists_in(const fs::path& folder, const std::string& path) {
  return fs::exists(folder / path) || fs::exists(folder / (path + ".cpp")) || fs::exists(folder / (path + ".h"));
}

// "src/easydel/nn/pass.h", "tests/golden", "scripts/run_tests.py"; patterns with * or <> are not paths.
TEST(Paths, ThatPagesNameExist) {
  const std::regex path(
      R"((?:^|[\s`"'(\[])((?:\.\./)*(?:src|tests|scripts|bench|examples|cmake|docs)/[A-Za-z0-9_./-]*[A-Za-z0-9_])(?![A-Za-z0-9_/<*{$]))");
  size_t found = 0;
  for (const SourceFile& page : pages()) {
    if (tells_of_old_names(page)) continue;
    std::set<std::string> names;
    for (const std::string& name : all_matches(page.text, path)) names.insert(name);
    for (std::string name : names) {
      while (name.starts_with("../")) name.erase(0, 3);
      ++found;
      // Also from the page's own folder, and as tests include each other.
      const bool there = exists_in(source_root(), name) || exists_in(source_root() / "tests", name) ||
                         exists_in((source_root() / page.path).parent_path(), name);
      EXPECT_TRUE(there) << page.path << " names " << name << ", which does not exist";
    }
  }
  EXPECT_GT(found, 60u);
}

// "nn/pass.cpp" and "models/zoo/llama.cpp" in docs: below src/easydel.
TEST(Paths, OfSourcesThatPagesNameExist) {
  std::string layers;
  for (const auto& entry : fs::directory_iterator(source_root() / "src/easydel"))
    if (entry.is_directory()) layers += (layers.empty() ? "" : "|") + entry.path().filename().string();
  const std::regex path("`((?:easydel/)?(?:" + layers + R"()/[a-z0-9_/]+\.(?:h|cpp))`)");
  size_t found = 0;
  for (const SourceFile& page : source_files("docs", {".md"})) {
    if (tells_of_old_names(page)) continue;
    for (std::string name : all_matches(page.text, path)) {
      if (name.starts_with("easydel/")) name.erase(0, 8);
      ++found;
      EXPECT_TRUE(fs::exists(source_root() / "src/easydel" / name) || fs::exists(source_root() / "tests" / name))
          << page.path << " names " << name << ", which does not exist";
    }
  }
  EXPECT_GT(found, 50u);
}

}  // namespace
}  // namespace easydel::test
