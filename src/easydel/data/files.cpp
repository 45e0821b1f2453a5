// Finds the files that a pattern matches.
#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <set>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/data/rows.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> deep_matches(const std::string& pattern) {
  const size_t stars = pattern.find("**"), slash = pattern.rfind('/', stars);
  const fs::path root = slash == std::string::npos ? "." : pattern.substr(0, slash + 1);
  std::vector<fs::path> out;
  for (const fs::path& name : files::list_files_below(root)) {
    std::string path = (root / name).string();
    if (slash == std::string::npos && path.starts_with("./")) path.erase(0, 2);
    if (is_match(path, pattern)) out.emplace_back(path);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// The files of a folder that `datasets` saved, as listed in its state.json. Throws UserError if it has several splits.
std::vector<fs::path> saved_files(const fs::path& folder, const std::string& where) {
  std::vector<fs::path> out;
  if (files::exists(folder / "dataset_dict.json"))
    refuse(where, str("'", folder.string(), "' holds a dataset for each split"),
           str("name one, for example '", (folder / "train").string(), "'"));
  if (!files::exists(folder / "state.json")) return out;
  const Value state = parse_file(folder / "state.json");
  const Value* const files = state.find("_data_files");
  for (const Value& file : files ? files->items : std::vector<Value>{})
    if (const Value* const name = file.find("filename")) out.push_back(folder / name->scalar);
  return out;
}

std::vector<fs::path> matches(const std::string& pattern) {
  if (files::exists(pattern)) return {pattern};  // a name that happens to contain brackets
  if (pattern.find("**") != std::string::npos) return deep_matches(pattern);
  glob_t found = {};
  std::vector<fs::path> out;
  if (glob(pattern.c_str(), GLOB_BRACE | GLOB_TILDE, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i)
      if (!files::is_folder(found.gl_pathv[i])) out.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  return out;
}

}  // namespace

bool is_match(const std::string& path, const std::string& pattern) {
  const size_t stars = pattern.find("**");
  if (stars == std::string::npos) return fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME) == 0;
  std::string shallow = pattern;
  if (const size_t at = shallow.find("**/"); at != std::string::npos) shallow.erase(at, 3);
  return fnmatch(pattern.c_str(), path.c_str(), 0) == 0 || fnmatch(shallow.c_str(), path.c_str(), FNM_PATHNAME) == 0;
}

std::vector<fs::path> expand(std::span<const std::string> patterns, const std::string& where) {
  std::vector<fs::path> out;
  std::set<std::string> seen;
  for (const std::string& pattern : patterns) {
    if (pattern.find("://") != std::string::npos)
      refuse(where, str("reading '", pattern, "' is not built yet"), "copy the file here and name its path");
    const auto found = matches(pattern);
    if (found.empty())
      refuse(where, str("no file matches '", pattern, "'"),
             str("looked from ", files::absolute(".").string(), "; give a path or a pattern such as data/*.jsonl"));
    const auto add = [&](const fs::path& path) {
      if (seen.insert(path.lexically_normal().string()).second) out.push_back(path);
    };
    for (const fs::path& path : found) {
      const auto saved = saved_files(path, where);
      std::ranges::for_each(saved, add);
      if (saved.empty() && files::is_folder(path))
        refuse(where, str("'", pattern, "' is a folder"), str("name its files, for example '", pattern, "/*.jsonl'"));
      if (saved.empty()) add(path);
    }
  }
  return out;
}

}  // namespace easydel::data
