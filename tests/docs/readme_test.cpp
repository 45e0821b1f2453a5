// The README answers a reader's questions in the order in which they come.
#include <algorithm>
#include <iterator>
#include <regex>
#include <sstream>

#include "docs/page.h"
#include "easydel/base/document.h"

namespace easydel {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const fs::path& file) {
  std::istringstream text(test::read_file(file));
  std::vector<std::string> out;
  for (std::string line; std::getline(text, line);) out.push_back(line);
  return out;
}

// The part of the README from a heading to the next one.
std::string section(const std::string& heading) {
  const std::string readme = test::read_file(test::source_root() / "README.md");
  const size_t begin = readme.find("\n## " + heading + "\n");
  return begin == std::string::npos ? "" : readme.substr(begin, readme.find("\n## ", begin + 1) - begin);
}

TEST(ReadmeText, HasItsPartsInTheOrderInWhichTheyAreNeeded) {
  std::vector<std::string> headings;
  for (const std::string& line : lines_of(test::source_root() / "README.md"))
    if (line.starts_with("## ")) headings.push_back(line.substr(3));
  EXPECT_EQ(headings, (std::vector<std::string>{"Install and quickstart", "Fine-tune on your own chat data",
                                                "Generate and chat", "Serve", "Export to GGUF",
                                                "What works, and what comes", "Speed", "Documentation"}));
  // What it is, and for whom: three sentences.
  const std::string readme = test::read_file(test::source_root() / "README.md");
  const std::string first = readme.substr(0, readme.find("\n## "));
  const std::regex end_of_sentence(R"(\.(\s|$))");
  EXPECT_EQ(std::distance(std::sregex_iterator(first.begin(), first.end(), end_of_sentence), {}), 3) << first;
}

TEST(ReadmeText, ShowsARowAndTenLinesOfYaml) {
  const std::string own_data = section("Fine-tune on your own chat data");
  const auto rows = code_blocks(own_data, "json"), runs = code_blocks(own_data, "yaml");
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_TRUE(parse_json(rows[0]).find("messages"));
  EXPECT_LE(std::ranges::count(runs[0], '\n'), 10);
  EXPECT_NE(own_data.find("/run-20"), std::string::npos) << "where the model ends up";
}

TEST(ReadmeText, ComparesItsSpeedWithPeers) {
  const std::string speed = section("Speed");
  EXPECT_NE(speed.find("| | EasyDeL | peer | ratio |"), std::string::npos);
  for (const char* peer : {"TRL", "llama.cpp", "OpenVINO"}) EXPECT_NE(speed.find(peer), std::string::npos) << peer;
}

// What readers of this field look for.
TEST(ReadmeText, UsesTheFieldsWords) {
  const std::string readme = test::read_file(test::source_root() / "README.md");
  for (const char* word : {"labels", "mask", "sampling", "dtype", "resume", "evaluation set", "dataset"})
    EXPECT_NE(readme.find(word), std::string::npos) << word;
}

// A row with fewer or more cells than its table loses a column.
TEST(Pages, TablesHaveAsManyCellsInEachRow) {
  std::vector<fs::path> pages{test::source_root() / "README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(test::source_root() / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  const std::regex in_code("`[^`]*`"), escaped(R"(\\\|)");
  for (const fs::path& page : pages) {
    int64_t cells = 0, number = 0;
    bool in_block = false;
    for (const std::string& line : lines_of(page)) {
      ++number;
      if (line.starts_with("```")) in_block = !in_block;
      if (in_block || !line.starts_with('|')) {
        cells = 0;
        continue;
      }
      const std::string plain = std::regex_replace(std::regex_replace(line, in_code, "x"), escaped, "x");
      const size_t end = plain.find_last_not_of(' ');
      const int64_t here = std::ranges::count(plain, '|') - (plain[end] == '|');
      if (cells == 0) cells = here;
      EXPECT_EQ(here, cells) << page.filename() << ":" << number;
    }
  }
}

}  // namespace
}  // namespace easydel
