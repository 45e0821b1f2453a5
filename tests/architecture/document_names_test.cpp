// Every public name of EasyDeL's documents has a row in docs/names.md, and every file that a row names exists.
#include <gtest/gtest.h>

#include <algorithm>

#include "architecture/source.h"

namespace easydel::test {
namespace {

std::string names_page() { return read_file(source_root() / "docs/names.md"); }

TEST(Names, OfTheDocumentsHaveARow) {
  const SourceFile list{"", read_file(source_root() / "tests/architecture/document_names.txt")};
  const SourceFile page{"", names_page()};
  std::string rows;
  for (const std::string& line : page.lines())
    if (line.starts_with("| ")) rows += line + "\n";
  int names = 0;
  for (const std::string& name : list.lines()) {
    if (name.empty() || name.starts_with("#")) continue;
    ++names;
    EXPECT_NE(rows.find("`" + name + "`"), std::string::npos) << name;
  }
  EXPECT_GT(names, 250);
}

// The last column of a row: files below src/easydel.
TEST(Names, AreInFilesThatAreThere) {
  const SourceFile page{"", names_page()};
  for (const std::string& line : page.lines()) {
    if (!line.starts_with("| ")) continue;
    const size_t end = line.find_last_not_of(" |"), begin = line.rfind('|', end);
    for (const std::string& file : all_matches(line.substr(begin), std::regex("`([a-z_/]+\\.(?:h|cpp)|[a-z_]+/)`")))
      EXPECT_TRUE(fs::exists(source_root() / "src/easydel" / file)) << line;
  }
}

}  // namespace
}  // namespace easydel::test
