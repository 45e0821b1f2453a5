// The walks of docs/tour.md are as short as they promise, and docs/numbers.md stays a page of tables.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "architecture/source.h"

namespace easydel::test {
namespace {

// The text of each "## " section by its heading.
std::map<std::string, std::string> sections_of(const std::string& page) {
  std::map<std::string, std::string> out;
  std::string heading;
  for (const std::string& line : SourceFile{"", page}.lines()) {
    if (line.starts_with("## ")) heading = line.substr(3);
    out[heading] += line + "\n";
  }
  return out;
}

TEST(Tour, WalksThroughFewFiles) {
  const auto sections = sections_of(read_file(source_root() / "docs/tour.md"));
  const std::map<std::string, size_t> limits = {{"A prompt token, from `generate` to the kernel", 14},
                                                {"A YAML key", 9},
                                                {"A training row", 14},
                                                {"A request of the engine", 8},
                                                {"An HTTP request", 17}};
  for (const auto& [heading, limit] : limits) {
    const auto section = sections.find(heading);
    ASSERT_NE(section, sections.end()) << heading;
    std::set<std::string> files;
    for (const std::string& file :
         all_matches(section->second, std::regex("`([a-z_0-9]+(?:/[a-z_0-9]+)+\\.(?:h|cpp))`")))
      files.insert(file);
    EXPECT_LE(files.size(), limit) << heading << ": " << testing::PrintToString(files);
    EXPECT_GE(files.size(), limit / 2) << heading << ": a walk must name its files";
    for (const std::string& file : files)
      EXPECT_TRUE(fs::exists(source_root() / "src/easydel" / file)) << heading << " names " << file;
  }
}

TEST(NumbersPage, StaysShort) {
  EXPECT_LE((SourceFile{"", read_file(source_root() / "docs/numbers.md")}.lines().size()), 150u);
}

}  // namespace
}  // namespace easydel::test
