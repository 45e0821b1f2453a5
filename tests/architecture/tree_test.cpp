// Rules about files: their length, their references to the world outside, the documentation of environment variables.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "architecture/source.h"

namespace easydel::test {
namespace {

constexpr size_t max_lines = 450;

std::vector<SourceFile> everything_written() {
  std::vector<SourceFile> all = source_files("src", {".h", ".cpp", ".cu", ".cuh"});
  for (const char* folder : {"tests", "bench", "scripts", "python"}) {
    for (SourceFile& file : source_files(folder, {".h", ".cpp", ".py", ".sh"})) {
      if (!file.path.starts_with("tests/data/")) all.push_back(std::move(file));
    }
  }
  return all;
}

// tests/architecture/budgets.txt: "path lines reason ..." a line, # comments.
std::map<std::string, size_t> budgets() {
  std::map<std::string, size_t> all;
  const SourceFile file{"", read_file(source_root() / "tests/architecture/budgets.txt")};
  const std::regex form(R"(^(\S+) (\d+) (\S.{20,})$)");
  for (const std::string& line : file.lines()) {
    if (line.empty() || line[0] == '#') continue;
    std::smatch match;
    EXPECT_TRUE(std::regex_match(line, match, form)) << "budgets.txt: '" << line << "' is not 'path lines reason'";
    if (!match.empty()) all[match[1]] = std::stoul(match[2]);
  }
  return all;
}

TEST(Files, AreShortOrSayWhyNot) {
  const auto allowed = budgets();
  std::set<std::string> needed;
  for (const SourceFile& file : everything_written()) {
    const size_t lines = file.lines().size();
    if (lines <= max_lines) continue;
    needed.insert(file.path);
    const auto budget = allowed.find(file.path);
    EXPECT_LE(lines, budget == allowed.end() ? max_lines : budget->second)
        << file.path << ": split it, or say why in budgets.txt";
  }
  for (const auto& [path, lines] : allowed) {
    EXPECT_TRUE(needed.contains(path)) << path << ": needs no line in budgets.txt any more";
  }
}

// clang-format of another version breaks lines in other places.
TEST(Files, AreFormatted) {
  const Ran version = run({"clang-format", "--version"});
  if (version.status != 0 || version.out.find("version 14.") == std::string::npos)
    GTEST_SKIP() << "clang-format 14 is not here";
  std::vector<std::string> command = {"clang-format", "--dry-run", "-Werror", "--ferror-limit=1"};
  for (const char* folder : {"src", "tests", "bench", "examples"})
    for (const SourceFile& file : source_files(folder, {".h", ".cpp", ".cu"}))
      if (!file.path.starts_with("tests/data/")) command.push_back((source_root() / file.path).string());
  const Ran checked = run(command);
  EXPECT_EQ(checked.status, 0) << "run ./easydel.sh format\n" << checked.err.substr(0, 2000);
}

TEST(Files, OpenWithWhatTheyAreFor) {
  for (const SourceFile& file : source_files("src/easydel", {".h"})) {
    EXPECT_TRUE(file.text.starts_with("// ")) << file.path;
    EXPECT_NE(file.text.find("#pragma once"), std::string::npos) << file.path;
  }
}

// Data shared between projects are for tests and measurements; the product works without them.
TEST(Files, OfTheProductKnowNothingOutsideTheRepository) {
  std::vector<SourceFile> product = source_files("src", {".h", ".cpp", ".cu", ".txt"});
  for (const char* folder : {"examples", "cmake", "scripts", "python"}) {
    for (SourceFile& file : source_files(folder, {".yaml", ".md", ".py", ".sh", ".cmake"}))
      product.push_back(std::move(file));
  }
  product.push_back({"easydel.sh", read_file(source_root() / "easydel.sh")});
  product.push_back({"README.md", read_file(source_root() / "README.md")});
  for (const SourceFile& file : product) {
    for (const char* outside : {"../shared", "shared/data", "shared/peers", "EASYDEL_SHARED_DATA", "/work/", "/opt/"}) {
      EXPECT_EQ(file.text.find(outside), std::string::npos) << file.path << " names " << outside;
    }
  }
}

std::set<std::string> variables_read() {
  std::set<std::string> names;
  for (const SourceFile& file : source_files("src", {".h", ".cpp", ".cu"})) {
    // Also through mesh/world.cpp's reader: read.text("RANK"), read.number("WORLD_SIZE", ...).
    const std::regex reading(R"rx((?:getenv|read\.text|read\.number)\("([A-Za-z_0-9]+)")rx");
    for (const std::string& name : all_matches(file.text, reading)) names.insert(name);
    for (const std::string& name : all_matches(file.text, std::regex(R"rx("(EASYDEL_[A-Z_0-9]+)")rx")))
      names.insert(name);
  }
  names.erase("EASYDEL_VERSION");  // a definition of the compiler's command line
  const std::string script = read_file(source_root() / "easydel.sh");
  for (const std::string& name : all_matches(script, std::regex(R"(\$\{(EASYDEL_[A-Z_]+))"))) names.insert(name);
  return names;
}

TEST(EnvironmentVariables, AreAllDocumented) {
  const std::string page = read_file(source_root() / "docs/environment.md");
  for (const std::string& name : variables_read()) {
    EXPECT_NE(page.find("`" + name + "`"), std::string::npos)
        << name << " is read, but has no row in docs/environment.md";
  }
}

TEST(EnvironmentVariables, ThatAreDocumentedAreRead) {
  std::set<std::string> read = variables_read();
  for (const SourceFile& file : everything_written()) {
    if (file.path.starts_with("src/")) continue;
    for (const std::string& name : all_matches(file.text, std::regex(R"((EASYDEL_[A-Z_0-9]+))"))) read.insert(name);
  }
  const std::string page = read_file(source_root() / "docs/environment.md");
  for (const std::string& name : all_matches(page, std::regex(R"(\| `(EASYDEL_[A-Z_0-9]+)`)"))) {
    EXPECT_TRUE(read.contains(name)) << name << " stands in docs/environment.md, but nothing reads it";
  }
}

}  // namespace
}  // namespace easydel::test
