// The source tree as text, for the rules that the code keeps.
#pragma once

#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "support/data.h"

namespace easydel::test {

struct SourceFile {
  std::string path;  // from the root of the tree: "src/easydel/ops/product.cpp"
  std::string text;

  std::string layer() const;  // "ops"; empty outside src/easydel/<layer>/
  std::vector<std::string> lines() const;
  std::vector<std::string> includes() const;  // the text between <> or "" of its #include lines
};

// Every file below `folder` whose name ends in one of `endings`, sorted by path.
std::vector<SourceFile> source_files(std::string_view folder, const std::vector<std::string>& endings);

// The first group of every match.
std::vector<std::string> all_matches(const std::string& text, const std::regex& pattern);

}  // namespace easydel::test
