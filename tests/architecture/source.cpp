#include "architecture/source.h"

#include <algorithm>
#include <sstream>

namespace easydel::test {

std::string SourceFile::layer() const {
  const fs::path relative = fs::path(path).lexically_relative("src/easydel");
  return relative.has_parent_path() && relative.begin()->string() != ".." ? relative.begin()->string() : "";
}

std::vector<std::string> SourceFile::lines() const {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

std::vector<std::string> SourceFile::includes() const {
  static const std::regex pattern(R"(^\s*#\s*include\s*[<"]([^">]+)[">])");
  std::vector<std::string> all;
  for (const std::string& line : lines()) {
    std::smatch match;
    if (std::regex_search(line, match, pattern)) all.push_back(match[1]);
  }
  return all;
}

std::vector<SourceFile> source_files(std::string_view folder, const std::vector<std::string>& endings) {
  std::vector<SourceFile> all;
  const fs::path start = source_root() / folder;
  if (!fs::exists(start)) return all;
  for (const auto& entry : fs::recursive_directory_iterator(start)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path().lexically_relative(source_root()).generic_string();
    const bool wanted =
        std::any_of(endings.begin(), endings.end(), [&](const std::string& e) { return path.ends_with(e); });
    if (wanted) all.push_back({path, read_file(entry.path())});
  }
  std::sort(all.begin(), all.end(), [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return all;
}

std::vector<std::string> all_matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> all;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
    all.push_back((*match)[1]);
  return all;
}

}  // namespace easydel::test
