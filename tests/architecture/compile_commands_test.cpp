// compile_commands.json, which editors read: clang cannot use batches, nor the precompiled headers of g++.
#include <gtest/gtest.h>

#include <map>

#include "architecture/source.h"
#include "easydel/base/document.h"

namespace easydel::test {
namespace {

TEST(CompileCommands, HaveOneEntryForEverySource) {
  const auto file = std::filesystem::path(program()).parent_path().parent_path() / "compile_commands.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file << " beside the program";
  std::map<std::string, std::vector<std::string>> commands;
  for (const Value& entry : parse_file(file).items)
    commands[std::filesystem::weakly_canonical(entry.find("file")->scalar)].push_back(entry.find("command")->scalar);
  for (const std::string_view folder : {"src/easydel", "tests"})
    for (const SourceFile& source : source_files(folder, {".cpp"})) {
      if (source.path.starts_with("tests/fuzz/")) continue;
      const auto& found = commands[std::filesystem::weakly_canonical(source_root() / source.path)];
      ASSERT_EQ(found.size(), 1u) << source.path;
      EXPECT_EQ(found[0].find("pch"), std::string::npos) << source.path;
    }
}

}  // namespace
}  // namespace easydel::test
