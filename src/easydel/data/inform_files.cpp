// The files of a data set of the hub: which of them belong to a split, by their names, as Hugging Face's `datasets`
// reads a repository that says nothing else.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/data/inform_files.h"
#include "easydel/hub/resolve.h"
#include "easydel/hub/repository.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

struct SplitWords {
  std::string_view split;
  std::array<std::string_view, 4> words;
};
constexpr std::array kSplits{SplitWords{"validation", {"validation", "valid", "dev", "val"}},
                             SplitWords{"test", {"test", "testing", "eval", "evaluation"}},
                             SplitWords{"train", {"train", "training"}}};

// Whether `word` stands in the path between what is no letter or digit.
bool has_word(const std::string& path, std::string_view word) {
  const auto apart = [&](size_t at) { return at >= path.size() || !std::isalnum(static_cast<unsigned char>(path[at])); };
  for (size_t at = path.find(word); at != std::string::npos; at = path.find(word, at + 1))
    if ((at == 0 || apart(at - 1)) && apart(at + word.size())) return true;
  return false;
}

// The split that a file's name says; empty: none.
std::string_view split_of(const std::string& path) {
  for (const SplitWords& split : kSplits)
    for (const std::string_view word : split.words)
      if (!word.empty() && has_word(path, word)) return split.split;
  return "";
}

// "valid" asks for what "validation" is; a word of one's own for itself.
std::string_view split_named(std::string_view word) {
  for (const SplitWords& split : kSplits)
    if (std::ranges::find(split.words, word) != split.words.end()) return split.split;
  return word;
}

}  // namespace

bool is_hub_dataset(const InformConfig& inform) {
  return inform.type && inform.data_files.empty() && inform.type->find('/') != std::string::npos && hub::is_hub_name(*inform.type);
}

std::vector<fs::path> files_of(const InformConfig& inform, const std::string& where) {
  if (!is_hub_dataset(inform)) return expand(inform.data_files, where);
  const fs::path folder = hub::resolve_dataset(*inform.type, where);
  std::map<std::string, std::vector<fs::path>, std::less<>> by_split;
  std::string other;  // what is there, and cannot be read
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).generic_string();  // files are links
    if (!entry.is_regular_file() || name.starts_with('.') || name.ends_with("dataset_infos.json")) continue;
    if (source_of_file(entry.path()))
      by_split[std::string(split_of(name))].push_back(entry.path());
    else if (other.empty())
      other = name;
  }
  // Without a name that says a split, all of it is for training.
  if (by_split.size() == 1 && by_split.contains("")) by_split["train"] = std::move(by_split[""]);
  auto found = by_split.find(split_named(inform.split));
  if (found == by_split.end() || found->second.empty()) {
    std::vector<std::string> splits;
    for (const auto& [split, files] : by_split)
      if (!split.empty()) splits.push_back(split);
    if (splits.empty() && !other.empty())
      refuse(where, "'" + *inform.type + "' has no files of json, jsonl or txt, but for example " + other + ", which cannot be read yet",
             "convert them to jsonl");
    refuse(where, "'" + *inform.type + "' has no files of the split '" + inform.split + "'",
           splits.empty() ? "it has no data files" : "splits: " + join(splits, ", "));
  }
  std::ranges::sort(found->second);
  return found->second;
}

}  // namespace easydel::data
