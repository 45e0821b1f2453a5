#include "easydel/data/save_dataset.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

void add(std::string& line, const char* key, auto&& numbers) {
  line += str(line.empty() ? "{" : ", ", "\"", key, "\": [");
  char digits[16];
  bool first = true;
  for (const int64_t number : numbers) {
    if (!first) line += ", ";
    first = false;
    line.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }
  line += "]";
}

class RowWriter {
 public:
  RowWriter(const SaveConfig& save, const TokenizationConfig& tokenization) : save_(save), tokenization_(tokenization) {
    name_ = to_json(Value::text(tokenization.output_field));
    name_ = name_.substr(1, name_.size() - 2);  // with its escapes
  }

  std::string row(const Example& example) const {
    std::string line;
    add(line, name_.c_str(), example.tokens);
    if (tokenization_.return_attention_mask)
      add(line, "attention_mask", std::vector<int32_t>(example.tokens.size(), 1));
    if (example.lengths.size() > 1) add(line, "seq_lengths", example.lengths);
    return line + "}";
  }

  // Rows [begin, end) as one file.
  void write(const fs::path& file, const Dataset& dataset, int64_t begin, int64_t end) const {
    const bool list = save_.format == SaveFormat::json;
    files::Writer writer(file);
    if (list) writer.write("[");
    for (int64_t i = begin; i < end; ++i) {
      if (list && i > begin) writer.write(",\n");
      writer.write(row(dataset.at(i)));
      if (!list) writer.write("\n");
    }
    if (list) writer.write("]\n");
    writer.commit();
  }

 private:
  const SaveConfig& save_;
  const TokenizationConfig& tokenization_;
  std::string name_;
};

// Where each file's rows begin, and behind the last.
std::vector<int64_t> cuts(const SaveConfig& save, const RowWriter& writer, const Dataset& dataset) {
  const int64_t rows = dataset.examples_count();
  std::vector<int64_t> out{0};
  if (save.num_shards) {
    const int64_t files = std::min(*save.num_shards, rows);
    for (int64_t file = 1; file <= files; ++file) out.push_back(rows * file / files);
    return out;
  }
  const int64_t most = *save.shard_bytes();
  for (int64_t i = 0, bytes = 0; i < rows; ++i) {
    const auto row = static_cast<int64_t>(writer.row(dataset.at(i)).size()) + 2;
    if (bytes > 0 && bytes + row > most) {
      out.push_back(i);
      bytes = 0;
    }
    bytes += row;
  }
  out.push_back(rows);
  return out;
}

fs::path folder_of(const SaveConfig& save) { return hub::expand_home(*save.output_path); }

// Files of an earlier save would be read with this one's.
void remove_earlier(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("train-") && name.find("-of-") != std::string::npos &&
        (name.ends_with(".json") || name.ends_with(".jsonl")))
      files::remove_all(entry.path());
  }
}

}  // namespace

hub::PushOptions push_options(const SaveConfig& save) {
  hub::PushOptions options;
  options.repository = save.hub_repo_id.value_or("");
  options.type = hub::RepositoryType::dataset;
  options.is_private = save.hub_private;
  if (save.hub_token) options.settings.token = *save.hub_token;
  return options;
}

void check_save(const std::string& where, const SaveConfig& save, const std::string& method) {
  if (method != "sft")
    refuse(where, "saving what " + method + " learns from is not built yet", "leave the section out");
  if (save.format == SaveFormat::parquet || save.format == SaveFormat::arrow)
    refuse(where + ".format",
           str("writing ", save.format == SaveFormat::arrow ? "arrow" : "parquet", " is not built yet"),
           "use jsonl or json");
  std::error_code missing;
  if (!save.overwrite && fs::exists(folder_of(save), missing))
    refuse(where + ".output_path", "'" + *save.output_path + "' is there already",
           "set overwrite: true, or name another folder");
  if (save.push_to_hub) hub::check_push(where + ".push_to_hub", push_options(save));
}

std::vector<fs::path> save_dataset(const std::string& where, const Dataset& dataset, const MixtureConfig& mixture,
                                   const std::string& method) {
  const SaveConfig& save = *mixture.save;
  check_save(where, save, method);
  const fs::path folder = folder_of(save);
  files::make_directories(folder);
  remove_earlier(folder);
  const RowWriter writer(save, mixture.tokenization);
  const std::vector<int64_t> at = cuts(save, writer, dataset);
  std::vector<fs::path> out;
  for (size_t file = 0; file + 1 < at.size(); ++file) {
    char name[64];
    std::snprintf(name, sizeof name, "train-%05zu-of-%05zu.%s", file, at.size() - 1,
                  save.format == SaveFormat::json ? "json" : "jsonl");
    out.push_back(folder / name);
    writer.write(out.back(), dataset, at[file], at[file + 1]);
  }
  log::info(where, ": ", at.back(), " rows in ", out.size(), out.size() == 1 ? " file of " : " files of ",
            folder.string());
  if (!save.push_to_hub) return out;
  const hub::Pushed pushed = hub::push_folder(where + ".push_to_hub", folder, push_options(save));
  log::info(where, ": ", pushed.sent.size(), " files sent to ", *save.hub_repo_id);
  return out;
}

}  // namespace easydel::data
