// src/easydel/README.md has a paragraph about every layer.
#include <gtest/gtest.h>

#include "architecture/source.h"

namespace easydel::test {
namespace {

// The text under "### name", up to the next heading; empty if there is none.
std::string paragraph(const std::string& page, const std::string& name) {
  const std::string heading = "\n### " + name + "\n";
  const size_t at = page.find(heading);
  if (at == std::string::npos) return "";
  const size_t begin = at + heading.size();
  return page.substr(begin, page.find("\n#", begin) - begin);
}

TEST(LayersPage, HasAParagraphForEveryLayerAndNoOther) {
  const std::string page = read_file(source_root() / "src/easydel/README.md");
  const std::string list = read_file(source_root() / "src/easydel/CMakeLists.txt");
  const std::vector<std::string> layers = all_matches(list, std::regex(R"(easydel_layer\(([a-z_]+))"));
  EXPECT_GT(layers.size(), 15u);
  for (const std::string& layer : layers) {
    EXPECT_GT(paragraph(page, layer).size(), 100u) << layer << ": say what it is for, and where to start reading";
    EXPECT_NE(paragraph(page, layer).find("Start with"), std::string::npos) << layer;
  }
  // In the order of the list, so that the page reads from bottom to top.
  EXPECT_EQ(all_matches(page, std::regex(R"(### ([a-z_]+)\n)")), layers);
}

// Files that a paragraph names in code quotes: of the layer, or with a path from src/easydel.
TEST(LayersPage, NamesFilesThatExist) {
  const std::string page = read_file(source_root() / "src/easydel/README.md");
  const fs::path root = source_root() / "src/easydel";
  for (const std::string& layer : all_matches(page, std::regex(R"(### ([a-z_]+)\n)")))
    for (const std::string& file : all_matches(paragraph(page, layer), std::regex(R"(`([a-z_0-9/]+\.(?:h|cpp|md))`)")))
      EXPECT_TRUE(fs::exists(root / layer / file) || fs::exists(root / file)) << layer << ": " << file;
}

}  // namespace
}  // namespace easydel::test
