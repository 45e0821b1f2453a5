// The files of a dataset on the hub: assigns them to splits by their names, as Hugging Face's `datasets` does for a
// repository without a configuration.
#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/data/inform_files.h"
#include "easydel/data/remote_files.h"
#include "easydel/data/split_parts.h"
#include "easydel/hub/repository.h"
#include "easydel/hub/resolve.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

struct SplitWords {
  std::string_view split;
  std::array<std::string_view, 4> words;
};
constexpr std::array split_names{SplitWords{"validation", {"validation", "valid", "dev", "val"}},
                                 SplitWords{"test", {"test", "testing", "eval", "evaluation"}},
                                 SplitWords{"train", {"train", "training"}}};

// Whether `word` is a separate word in the name of a folder or file: not next to a letter, and in a file's name
// followed by something.
bool has_word(std::string_view name, std::string_view word, bool folder) {
  const auto apart = [&](size_t at) {
    return std::string_view("-._ 0123456789").find(name[at]) != std::string_view::npos;
  };
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || apart(at - 1)) && (end == name.size() ? folder : apart(end))) return true;
  }
  return false;
}

// "valid" means "validation"; other words mean themselves.
std::string_view split_named(std::string_view word) {
  for (const SplitWords& split : split_names)
    if (std::ranges::find(split.words, word) != split.words.end()) return split.split;
  return word;
}

// `configs:` at the head of the card, as Hugging Face's `datasets` reads it; null: none.
Value configurations_of(const fs::path& folder) {
  const fs::path card = folder / "README.md";
  if (!files::exists(card)) return {};
  const std::string text = files::read(card);
  const size_t end = text.find("\n---", 3);
  if (!text.starts_with("---") || end == std::string::npos) return {};
  const Value head = parse_yaml(text.substr(4, end - 3), card.string());
  const Value* const configs = head.is_map() ? head.find("configs") : nullptr;
  return configs && configs->is_list() ? *configs : Value{};
}

std::string text_at(const Value& map, std::string_view key) {
  const Value* const value = map.is_map() ? map.find(key) : nullptr;
  return value && !value->is_map() && !value->is_list() && !value->is_null() ? value->scalar : "";
}

// The patterns of files of one configuration, with their splits.
std::vector<std::pair<std::string, std::string>> patterns_of(const Value& configuration) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](const std::string& split, const Value& paths) {
    for (const Value& path : paths.is_list() ? paths.items : std::vector<Value>{paths})
      if (const auto pattern = path.as_string()) out.emplace_back(split, *pattern);
  };
  const Value* const files = configuration.find("data_files");
  if (!files) return out;
  for (const Value& entry : files->is_list() ? files->items : std::vector<Value>{*files}) {
    if (!entry.is_map())
      add("train", entry);
    else if (const Value* path = entry.find("path"))
      add(std::string(split_named(text_at(entry, "split"))), *path);
    else
      for (const auto& [split, paths] : entry.entries) add(std::string(split_named(split)), paths);
  }
  return out;
}

// Files that describe the data (those that `datasets` knows), and hidden files.
bool is_about_data(const fs::path& file) {
  static constexpr std::array<std::string_view, 6> names{"README.md",          "config.json", "dataset_info.json",
                                                         "dataset_infos.json", "state.json",  "dataset_dict.json"};
  return std::ranges::any_of(
             file,
             [](const fs::path& part) { return part.string().starts_with('.') || part.string().starts_with("__"); }) ||
         std::ranges::find(names, file.filename().string()) != names.end();
}

using Names = std::vector<std::string>;

// "data/train_sft-00000-of-00003.parquet": "train_sft"; empty: the name has another form.
std::string split_of_shard(const std::string& file) {
  if (!is_match(file, "data/*-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]*.*")) return "";
  const size_t begin = file.find('/') + 1;
  return file.substr(begin, file.rfind("-of-") - 6 - begin);
}

using Splits = std::vector<std::string>;

// Assigns files to splits by push_to_hub()'s file names, else by folder names, else by file names, else to training.
// The first rule that applies to any file is used.
Splits splits_by_shard(const std::string& file) {
  const std::string split = split_of_shard(file);
  return split.empty() ? Splits{} : Splits{split};
}
template <class Says>
Splits splits_where(const Says& says) {
  Splits out;
  for (const SplitWords& split : split_names)
    if (std::ranges::any_of(split.words, [&](std::string_view word) { return !word.empty() && says(word); }))
      out.emplace_back(split.split);
  return out;
}
Splits splits_by_folder(const std::string& file) {
  const fs::path folders = fs::path(file).parent_path();
  return splits_where([&](std::string_view word) {
    return std::ranges::any_of(folders, [&](const fs::path& one) { return has_word(one.string(), word, true); });
  });
}
Splits splits_by_name(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  return splits_where([&](std::string_view word) { return has_word(name, word, false); });
}
Splits training_split(const std::string&) { return {"train"}; }

struct Found {
  std::map<std::string, Names, std::less<>> by_split;
  std::string other;  // a file that exists but cannot be read; empty: none
};

// The files of a repository by split: those of a configuration, else all by their paths, as in `datasets`.
Found found_in(const Names& files, const Value* configuration) {
  std::string below = configuration ? text_at(*configuration, "data_dir") : "";
  if (!below.empty() && !below.ends_with('/')) below += '/';
  Names inside;
  for (const std::string& file : files)
    if (file.starts_with(below) && !is_about_data(file.substr(below.size())))
      inside.push_back(file.substr(below.size()));
  const auto patterns =
      configuration ? patterns_of(*configuration) : std::vector<std::pair<std::string, std::string>>{};
  const auto by_pattern = [&](const std::string& file) {
    Splits out;
    for (const auto& [split, pattern] : patterns)
      if (is_match(file, pattern) && std::ranges::find(out, split) == out.end()) out.push_back(split);
    return out;
  };
  using Rule = std::function<Splits(const std::string&)>;
  std::vector<Rule> rules{splits_by_shard, splits_by_folder, splits_by_name, training_split};
  if (!patterns.empty()) rules = {by_pattern};
  Found out;
  for (const Rule& splits_of : rules) {
    bool says = false;
    for (const std::string& file : inside)
      for (const std::string& split : splits_of(file)) {
        says = true;
        if (source_of_file(file))
          out.by_split[split].push_back(below + file);
        else if (out.other.empty())
          out.other = below + file;
      }
    if (says) break;
  }
  return out;
}

// The files of the most frequent kind; in a tie, the kind that `datasets` prefers.
Names of_one_kind(const Names& files) {
  static constexpr std::array<std::string_view, 4> liked{"parquet", "arrow", "json", "csv"};
  const auto kind_of = [](const std::string& file) {
    const std::string_view name = source_of_file(file)->name;
    return name == "jsonl" ? std::string_view("json") : name;
  };
  std::map<std::string_view, size_t> counts;
  for (const std::string& file : files) ++counts[kind_of(file)];
  const auto worth = [&](const auto& one) {
    return std::pair(one.second, liked.end() - std::ranges::find(liked, one.first));
  };
  const auto best = std::ranges::max_element(counts, {}, worth);
  Names out;
  for (const std::string& file : files)
    if (kind_of(file) == best->first) out.push_back(file);
  std::ranges::sort(out);
  return out;
}

Names files_below(const fs::path& folder) {
  Names out;
  for (const fs::path& file : files::list_files_below(folder)) out.push_back(file.generic_string());
  return out;
}

// Of a dataset's files those of the inform's split; `folder` has its card. `what`: the dataset's name, for errors.
Names files_of_split(const Names& files, const fs::path& folder, const InformConfig& inform, const std::string& what,
                     const std::string& where) {
  const Value configurations = configurations_of(folder);
  const std::string asked = inform.dataset_split_name.value_or("");
  const Value *chosen = nullptr, *standard = configurations.items.size() == 1 ? &configurations.items[0] : nullptr;
  for (const Value& one : configurations.items) {
    if (!asked.empty() && text_at(one, "config_name") == asked) chosen = &one;
    const Value* const flag = one.find("default");
    if (text_at(one, "config_name") == "default" || (flag && flag->as_bool().value_or(false))) standard = &one;
  }
  // A word that is not a configuration is a split.
  const std::string& word = asked.empty() || chosen ? inform.split : asked;
  const auto [by_split, other] = found_in(files, chosen ? chosen : standard);
  auto found = by_split.find(word);
  if (found == by_split.end()) found = by_split.find(split_named(word));
  if (found == by_split.end()) {
    Names splits, names;
    for (const auto& [split, its_files] : by_split)
      if (!split.empty()) splits.push_back(split);
    if (splits.empty() && !other.empty())
      refuse(where,
             "'" + what + "' has no files of " + source_names() + ", but for example " + other +
                 ", which cannot be read yet",
             "convert them to jsonl");
    for (const Value& one : configurations.items) names.push_back(text_at(one, "config_name"));
    refuse(where, "'" + what + "' has no files of the split '" + word + "'",
           (splits.empty() ? "it has no data files" : "splits: " + join(splits, ", ")) +
               (names.empty() ? "" : "; configurations: " + join(names, ", ")));
  }
  return of_one_kind(found->second);
}

std::vector<fs::path> below(const fs::path& folder, const Names& names) {
  std::vector<fs::path> out;
  for (const std::string& name : names) out.push_back(folder / name);
  return out;
}

std::vector<fs::path> files_on_hub(const InformConfig& inform, const std::string& where) {
  Names files;
  fs::path folder = hub::resolve_dataset(*inform.type, where, [&](std::string_view file) {
    files.emplace_back(file);
    return file == "README.md";
  });
  if (files.empty()) files = files_below(folder);
  const Names wanted = files_of_split(files, folder, inform, *inform.type, where);
  folder = hub::resolve_dataset(*inform.type, where,
                                [&](std::string_view file) { return std::ranges::find(wanted, file) != wanted.end(); });
  return below(folder, wanted);
}

// Whether a folder has files of rows and is not a model's.
bool holds_rows(const fs::path& folder) {
  if (files::exists(folder / "dataset_dict.json")) return true;
  if (files::exists(folder / "config.json")) return false;
  return std::ranges::any_of(files_below(folder),
                             [](const std::string& file) { return !is_about_data(file) && source_of_file(file); });
}

// A folder means the files of the inform's split in it, as a dataset of the hub does; one that save_to_disk() wrote of
// several splits means the one of its name.
std::vector<fs::path> local_files(const InformConfig& inform, const RemoteOptions& remote, const std::string& where) {
  std::vector<fs::path> out;
  const auto add = [&](const std::vector<fs::path>& more) {
    for (const fs::path& file : more)
      if (std::ranges::find(out, file) == out.end()) out.push_back(file);
  };
  for (const std::string& pattern : inform.data_files) {
    if (is_remote(pattern)) {
      add(local_copies(pattern, remote, where));
      continue;
    }
    const fs::path folder = pattern;
    if (!files::is_folder(folder) || files::exists(folder / "state.json") || !holds_rows(folder))
      add(expand(std::array{pattern}, where));
    else if (files::exists(folder / "dataset_dict.json") && files::is_folder(folder / inform.split))
      add(expand(std::array{(folder / inform.split).string()}, where));
    else if (files::exists(folder / "dataset_dict.json"))
      add(expand(std::array{pattern}, where));  // says what there is
    else
      add(below(folder, files_of_split(files_below(folder), folder, inform, pattern, where)));
  }
  return out;
}

}  // namespace

bool is_hub_dataset(const InformConfig& inform) {
  return inform.type && inform.data_files.empty() && inform.type->find('/') != std::string::npos &&
         hub::is_hub_name(*inform.type);
}

const FileSource* reader_of(const InformConfig& inform, const fs::path& file) {
  const std::string word = is_hub_dataset(inform) ? "" : canonical(inform.type.value_or(""));
  return word.empty() || word == "visual" || word == "image" ? source_of_file(file)
                                                             : find_source(word == "text" ? "txt" : word);
}

std::vector<fs::path> files_of(const InformConfig& inform, const RemoteOptions& remote, const std::string& where) {
  std::vector<fs::path> files;
  InformConfig one = inform;
  for (const SplitPart& part : split_parts(inform.split, where)) {
    one.split = part.split;
    for (const fs::path& file : is_hub_dataset(one) ? files_on_hub(one, where) : local_files(one, remote, where))
      if (std::ranges::find(files, file) == files.end()) files.push_back(file);
  }
  for (const fs::path& file : files)
    if (const FileSource* const reader = reader_of(inform, file); reader && reader->check) reader->check();
  return files;
}

}  // namespace easydel::data
